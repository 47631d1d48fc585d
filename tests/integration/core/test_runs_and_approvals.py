"""Approvals through the real invoker, runtime and Postgres: asked once, decided by people, executed once."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.runtime.agent.script import Turn
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.models import Verdict
from agentic.services.tools.context import CallContext
from agentic.testing import Call, Calls, Say, harness
from core_world import World, execute, journal, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])


async def test_a_read_answers_inside_the_loop_and_leaves_a_span_and_no_claim(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([Call("crm.search", {"text": "per"})]), Say("Found.")]
    async with harness(tools=[world.read()], script=script, database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", "Found.", None)
        assert [(role, text) for role, text in await h.messages(run_id)][2] == (
            "tool",
            '{"ok":true,"data":{"id":"crm.search-1"}}',
        )
        [span] = await h.calls(run_id)
        assert (span["status"], span["code"], span["state"]) == ("ok", None, "closed")
        assert await journal(h, run_id) == []


@pytest.mark.guarantee("D1", "J1")
async def test_a_low_risk_write_runs_without_asking_and_its_answer_is_stored(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([Call("notes.save", {"text": "milk"})]), Say("Saved.")]
    async with harness(tools=[world.write()], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("notes.save", "milk")]
        [claim] = await journal(h, run_id)
        assert (claim["state"], claim["outcome_status"], claim["epoch"] > 0) == ("completed", "ok", True)
        tree = await h.tree(run_id)
        assert [effect["kind"] for effect in tree.effects] == ["completed"]
        assert [decision["effect"] for decision in tree.decisions] == ["allow"]


@pytest.mark.guarantee("A2", "D3")
async def test_a_send_parks_and_an_approval_runs_it_once_though_the_model_never_proposes_it_again(
    database: str,
) -> None:
    world = World()
    asked = []

    def second(history: object) -> Say:
        asked.append(history)
        return Say("Sent.")

    async with harness(tools=[world.send()], script=[MAIL, second], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        assert (parked.state, world.effects, asked) == ("parked", [], [])
        [span] = await h.calls(run_id)
        assert (span["status"], span["code"]) == ("ok", None)  # a pause is no failure
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("mail.send", "hello")]
        assert len(asked) == 1
        assert await h.settle(run_id) is not None
        assert world.effects == [("mail.send", "hello")]


@pytest.mark.guarantee("D3")
async def test_a_required_approval_closes_its_tool_span_ok_carrying_the_approval_id(database: str) -> None:
    world = World()
    both = Calls([Call("mail.send", {"text": "one"}), Call("mail.send", {"text": "two"})])
    async with harness(tools=[world.send()], script=[both, Say("Sent.")], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        asked = {str(json.loads(approval.arguments_text)["text"]): str(approval.id) for approval in parked.pending}
        spans = await h.calls(run_id)
        assert [(span["status"], span["code"]) for span in spans] == [("ok", None)] * 2
        assert {json.loads(span["input"])["text"]: span["attributes"]["approval.id"] for span in spans} == asked


@pytest.mark.guarantee("A2")
async def test_a_rejection_reaches_the_model_with_the_comment_and_a_repeat_asks_nobody(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, MAIL, Say("Not sent.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id, "rejected", comment="Too early.")
        settled = await h.settle(run_id)
        assert (settled.state, settled.pending, world.effects) == ("succeeded", [], [])
        answers = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert len(answers) == 2
        for answer in answers:
            six, said = answer.split("\n")
            assert json.loads(six)["reason_code"] == "rejected"
            assert json.loads(said)["text"] == "Too early."
        assert len((await h.tree(run_id)).approvals) == 1


@pytest.mark.guarantee("A4")
async def test_an_approval_past_its_time_reads_as_expired_without_any_sweep(database: str) -> None:
    world = World()
    timings = Timings(lease_s=2, renew_s=0.5, approval_expires_s=0.05)
    async with harness(
        tools=[world.send()], script=[MAIL, Say("Expired.")], database_url=database, timings=timings
    ) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "parked"
        [approval] = (await h.tree(run_id)).approvals
        await asyncio.sleep(0.1)
        with pytest.raises(Conflict, match="expired"):
            await h.platform.approvals.decide(
                h.organization_id, approval["id"], user_id=h.user_id, verdict=Verdict.APPROVED
            )
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == []
        [answer] = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert json.loads(answer)["reason_code"] == "expired"
        [approval] = (await h.tree(run_id)).approvals
        assert approval["status"] == "expired"


@pytest.mark.guarantee("D5", "A2")
async def test_two_gated_calls_of_a_turn_are_filed_together_decided_one_by_one_and_run_in_order(database: str) -> None:
    world = World()
    turn = Calls([Call("mail.send", {"text": "first"}), Call("mail.send", {"text": "second"})])
    async with harness(tools=[world.send()], script=[turn, Say("Both.")], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        assert len(parked.pending) == 2
        by_text = {json.loads(approval.arguments_text)["text"]: approval for approval in parked.pending}
        await _decide(h, by_text["second"].id)
        assert await h.advance(run_id) == "idle"  # the first of the turn is not settled yet
        assert world.effects == []
        await _decide(h, by_text["first"].id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("mail.send") == ["first", "second"]
        assert len((await h.tree(run_id)).approvals) == 2


@pytest.mark.guarantee("A1")
async def test_a_question_that_no_open_call_asks_any_more_is_taken_back_when_the_run_parks_again(database: str) -> None:
    world = World()
    turn = Calls([Call("mail.send", {"text": "first"}), Call("mail.other", {"text": "second"})])
    again = Calls([Call("mail.send", {"text": "third"})])
    tools = [world.send(), world.send("mail.other")]
    async with harness(tools=tools, script=[turn, again, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        by_tool = {approval.tool: approval for approval in parked.pending}
        await h.platform.catalogue.set_grant(h.organization_id, h.agent.name, "mail.other", active=False)
        await _decide(h, by_tool["mail.send"].id)
        parked = await h.settle(run_id)
        assert [json.loads(approval.arguments_text)["text"] for approval in parked.pending] == ["third"]
        stale = await h.platform.approvals.show(h.organization_id, by_tool["mail.other"].id)
        assert stale.status == "cancelled"
        with pytest.raises(Conflict, match="cancelled"):
            await _decide(h, stale.id)


@pytest.mark.guarantee("D5")
async def test_of_three_pending_calls_each_answer_settles_its_own_and_nothing_runs_twice(database: str) -> None:
    world = World()
    turn = Calls([Call("mail.send", {"text": text}) for text in "abc"])
    async with harness(tools=[world.send()], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        pending = {json.loads(a.arguments_text)["text"]: a.id for a in (await h.settle(run_id)).pending}
        await _decide(h, pending["b"])
        await h.settle(run_id)
        await _decide(h, pending["a"], Verdict.REJECTED)
        parked = await h.settle(run_id)
        assert parked.state == "parked"
        assert world.of("mail.send") == ["b"]
        assert [json.loads(a.arguments_text)["text"] for a in parked.pending] == ["c"]
        await _decide(h, pending["c"])
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("mail.send") == ["b", "c"]
        answers = [json.loads(text) for role, text in await h.messages(run_id) if role == "tool"]
        assert [answer.get("reason_code", "ok") for answer in answers] == ["rejected", "ok", "ok"]


@pytest.mark.guarantee("D5")
async def test_a_denied_call_costs_its_siblings_nothing(database: str) -> None:
    world = World()
    turn = Calls(
        [Call("notes.save", {"text": "a"}), Call("notes.drop", {"text": "b"}), Call("notes.save", {"text": "c"})]
    )
    tools = [world.write(), world.write("notes.drop")]
    async with harness(tools=tools, script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "notes.drop", active=False)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("notes.save", "a"), ("notes.save", "c")]
        answers = [json.loads(text) for role, text in await h.messages(run_id) if role == "tool"]
        assert [answer.get("reason_code", "ok") for answer in answers] == ["ok", "denied", "ok"]


@pytest.mark.guarantee("D2")
@pytest.mark.parametrize("stripped", ["grant", "tool", "member"])
async def test_a_right_that_is_taken_while_the_run_waits_stops_the_effect_at_the_resume(
    database: str, stripped: str
) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        approver = uuid4()
        await h.platform.approval_store.put_member(h.organization_id, approver, Role.APPROVER)
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        await h.platform.approvals.decide(h.organization_id, approval.id, user_id=approver, verdict=Verdict.APPROVED)
        match stripped:
            case "grant":
                await h.platform.catalogue.set_grant(h.organization_id, "tested", "mail.send", active=False)
            case "tool":
                await h.platform.catalogue.set_enabled(h.organization_id, "mail.send", enabled=False)
            case _:
                await execute(h, "delete from agent.members where user_id = %(user_id)s", user_id=h.user_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == []
        [answer] = [json.loads(text) for role, text in await h.messages(run_id) if role == "tool"]
        assert answer["reason_code"] == ("tool_unavailable" if stripped == "tool" else "denied")


@pytest.mark.guarantee("D2")
async def test_an_approval_of_somebody_who_lost_the_role_asks_again(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        approver = uuid4()
        await h.platform.approval_store.put_member(h.organization_id, approver, Role.APPROVER)
        run_id = await h.start()
        [first] = (await h.settle(run_id)).pending
        await h.platform.approvals.decide(h.organization_id, first.id, user_id=approver, verdict=Verdict.APPROVED)
        await h.platform.approval_store.put_member(h.organization_id, approver, Role.MEMBER)
        parked = await h.settle(run_id)
        assert parked.state == "parked"
        assert world.effects == []
        [second] = parked.pending
        assert second.id != first.id
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("mail.send", "hello")]


async def test_a_frozen_environment_runs_reads_only(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([Call("crm.search", {"text": "a"}), Call("notes.save", {"text": "b"})]), Say("Done.")]
    async with harness(
        tools=[world.read(), world.write()], script=script, database_url=database, environment="frozen"
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == [("crm.search", "a")]
        assert (await h.calls(run_id, "notes.save"))[0]["code"] == "denied"


@pytest.mark.guarantee("A5", "T1")
async def test_only_an_approver_of_that_organization_decides(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        stranger, plain, elsewhere = uuid4(), uuid4(), uuid4()
        await h.platform.approval_store.put_member(h.organization_id, plain, Role.MEMBER)
        await h.platform.approval_store.put_member(elsewhere, stranger, Role.ADMIN)
        for person in (stranger, plain):
            with pytest.raises(NotPermitted, match="approver"):
                await h.platform.approvals.decide(
                    h.organization_id, approval.id, user_id=person, verdict=Verdict.APPROVED
                )
        with pytest.raises(NotFound):
            await h.platform.approvals.decide(elsewhere, approval.id, user_id=stranger, verdict=Verdict.APPROVED)
        assert (await h.settle(run_id)).state == "parked"


@pytest.mark.guarantee("A3")
async def test_the_same_decision_again_succeeds_and_the_opposite_one_names_the_first(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        first = await _decide(h, approval.id)
        assert await _decide(h, approval.id) == first
        with pytest.raises(Conflict, match=f"already approved by {h.user_id}"):
            await _decide(h, approval.id, Verdict.REJECTED)
        await h.settle(run_id)
        with pytest.raises(Conflict, match="already approved"):
            await _decide(h, approval.id, Verdict.REJECTED)


@pytest.mark.guarantee("A2", "W1")
async def test_a_decision_between_the_preflight_and_the_park_is_not_lost_and_not_asked_twice(database: str) -> None:
    """The second question of a turn is decided while the first one's answer is being led."""
    world = World()
    turn = Calls([Call("mail.send", {"text": "a"}), Call("mail.send", {"text": "b"})])

    async with harness(tools=[world.send()], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        pending = {json.loads(a.arguments_text)["text"]: a.id for a in (await h.settle(run_id)).pending}
        await _decide(h, pending["a"])
        store = h.platform.run_store
        park = store.park

        async def park_late(*args: object, **kwargs: object) -> object:
            await _decide(h, pending["b"])
            return await park(*args, **kwargs)  # type: ignore[arg-type]

        store.park = park_late  # type: ignore[assignment]
        assert await h.advance(run_id) == "parked"
        store.park = park  # type: ignore[method-assign]
        settled = await h.settle(run_id)
        assert (settled.state, settled.pending) == ("succeeded", [])
        assert world.of("mail.send") == ["a", "b"]
        assert len((await h.tree(run_id)).approvals) == 2


@pytest.mark.guarantee("A1")
async def test_what_was_approved_is_what_runs_whatever_the_order_of_keys_or_the_call_id(database: str) -> None:
    world = World()
    script: list[Turn] = [
        Calls([Call("mail.send", '{"text": "hello"}', id="one")]),
        Calls([Call("mail.send", ' {"text":"hello" } ', id="two")]),
        Say("Done."),
    ]
    async with harness(tools=[world.send()], script=script, database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"  # the second proposal is the same call
        assert world.effects == [("mail.send", "hello")]
        assert len((await h.tree(run_id)).approvals) == 1


@pytest.mark.guarantee("A1")
async def test_an_approval_does_not_cover_arguments_that_were_changed_behind_it(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        await execute(
            h,
            "update agent.run_messages set body = convert_to(replace(convert_from(body, 'UTF8'), 'hello', 'money'), 'UTF8') where run_id = %(run_id)s",
            run_id=run_id,
        )
        await execute(h, 'update agent.proposals set arguments_text = \'{"text":"money"}\'')
        parked = await h.settle(run_id)
        assert (parked.state, world.effects) == ("parked", [])
        [fresh] = parked.pending
        assert json.loads(fresh.arguments_text) == {"text": "money"}


@pytest.mark.guarantee("A1")
async def test_a_tool_that_changed_while_the_run_waited_does_not_run(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        organization_id = h.organization_id
    async with harness(tools=[world.send(timeout_s=20)], script=[MAIL, Say("Done.")], database_url=database) as later:
        later.organization_id = organization_id
        assert (await later.settle(run_id)).state == "succeeded"
        assert world.effects == []
        assert (await later.calls(run_id))[-1]["code"] == "tool_changed"


@pytest.mark.guarantee("W3")
async def test_a_parked_run_holds_neither_lease_nor_connection_and_no_sweep_moves_it(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        [run] = await rows(h, "select state, lease_expires_at, due_at, attempts_without_progress from agent.runs")
        assert run == {"state": "parked", "lease_expires_at": None, "due_at": None, "attempts_without_progress": 0}
        for _ in range(3):
            await h.platform.sweeper.runs()
            assert await h.advance(run_id) == "idle"
        pool = h.platform.database.pool.get_stats()
        assert pool["pool_available"] == pool["pool_size"]


async def test_a_comment_with_characters_postgres_refuses_reaches_the_model(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id, "rejected", comment="no\x00pe \ud800 ü")
        assert (await h.settle(run_id)).state == "succeeded"
        [answer] = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert json.loads(answer.split("\n")[1])["text"] == "no␀pe \ufffd ü"


async def _decide(h: object, approval_id: object, verdict: Verdict = Verdict.APPROVED) -> object:
    return await h.platform.approvals.decide(h.organization_id, approval_id, user_id=h.user_id, verdict=verdict)  # type: ignore[attr-defined]


@pytest.mark.guarantee("A6")
async def test_a_preview_is_shown_and_one_that_fails_or_hangs_never_loses_the_approval(database: str) -> None:
    world = World()
    contexts: list[CallContext] = []

    async def shows(ctx: CallContext, args: Any) -> str:
        contexts.append(ctx)
        return f"Send\n'{args.text}'"

    async def fails(_ctx: CallContext, _args: Any) -> str:
        raise LookupError("no such person")

    async def hangs(_ctx: CallContext, _args: Any) -> str:
        await asyncio.sleep(30)
        return "late"

    tools = [
        world.send("mail.show", preview=shows, approval_preview=True),
        world.send("mail.fail", preview=fails, approval_preview=True),
        world.send("mail.hang", preview=hangs, approval_preview=True, timeout_s=0.1),
    ]
    turn = Calls([Call(tool.spec.name, {"text": "hello"}) for tool in tools])
    async with harness(tools=tools, script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        parked = await h.settle(run_id)
        shown = {approval.tool: approval.shown for approval in parked.pending}
        assert shown == {"mail.show": "Send 'hello'", "mail.fail": None, "mail.hang": None}
        assert world.effects == []
        assert await journal(h, run_id) == []
        assert [context.idempotency_key for context in contexts] == [None]
