"""A run that waited goes on in another world: another process, newer code, fewer rights. It ends as promised, strands nowhere and never
half runs.

The first platform files the question and closes; what happens while nobody is there happens; a second platform finds the answer.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, Field

from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal, Role
from agentic.contract.results import ErrorCode
from agentic.runtime.agent.script import Turn
from agentic.services.approvals.models import Verdict
from agentic.services.policy.rules import RuleDraft, RuleEffect
from agentic.services.tools.connections import ConnectionPort, Unconnected
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, vendor_tool
from agentic.services.tools.handlers.errors import ConnectionUnusable
from agentic.services.tools.live import InFlight, ReleaseState
from agentic.testing import Call, Calls, Harness, Say, Settled, harness
from core_world import Done, World, execute, journal, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])
SCRIPT: list[Turn] = [MAIL, Say("Done.")]


@dataclass(kw_only=True)
class Waiting:
    """A run whose approved call waits for somebody to lead it."""

    database: str
    world: World = field(default_factory=World)
    organization_id: UUID = field(default_factory=uuid4)
    requester: UUID = field(default_factory=uuid4)
    approver: UUID = field(default_factory=uuid4)
    run_id: UUID = field(default_factory=uuid4)

    @asynccontextmanager
    async def somewhere(self, tools: Sequence[Tool], **given: Any) -> AsyncIterator[Harness]:
        """Another platform on the same database."""
        async with harness(tools=tools, script=given.pop("script", SCRIPT), database_url=self.database, **given) as h:
            h.organization_id, h.user_id = self.organization_id, self.requester
            yield h

    async def resumed(self, h: Harness) -> tuple[Settled, list[str]]:
        """How the run ends there, and what each of its calls answered; nothing of it is left open."""
        settled = await h.settle(self.run_id)
        if settled.state != "parked":
            await nothing_open(h, self.run_id)
        return settled, [answer.get("reason_code", "ok") for answer in await answers(h, self.run_id)]


async def answers(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    return [json.loads(text.split("\n")[0]) for role, text in await h.messages(run_id) if role == "tool"]


async def nothing_open(h: Harness, run_id: UUID) -> None:
    tree = await h.tree(run_id)
    assert [span["name"] for span in tree.spans if span["state"] != "closed"] == []
    assert tree.waits == []
    assert [each["id"] for each in tree.approvals if each["status"] == "pending"] == []
    assert [row["key"] for row in await journal(h, run_id) if row["state"] == "processing"] == []
    [row] = await rows(h, "select lease_expires_at, finished_at from agent.runs where id = %(id)s", id=run_id)
    assert (row["lease_expires_at"], row["finished_at"] is not None) == (None, True)


async def waiting(database: str) -> Waiting:
    """File the question in one platform, and have it approved there; nobody leads the run after."""
    made = Waiting(database=database)
    async with made.somewhere([made.world.send()]) as h:
        await h.platform.approval_store.put_member(made.organization_id, made.requester, Role.MEMBER)
        await h.platform.approval_store.put_member(made.organization_id, made.approver, Role.APPROVER)
        made.run_id = await h.start()
        [approval] = (await h.settle(made.run_id)).pending
        await h.platform.approvals.decide(
            made.organization_id, approval.id, user_id=made.approver, verdict=Verdict.APPROVED
        )
    assert made.world.effects == []
    return made


class Short(BaseModel):
    """What the tool takes after a deploy."""

    text: str = Field(max_length=3)


def stricter(world: World) -> Tool:
    """``mail.send`` of a later release, which would not take the stored arguments."""

    @vendor_tool(
        "mail.send",
        "Sends: mail.send.",
        side_effects="send",
        idempotency="conditional",
        vendor_key_ttl_s=3600,
        connection="mail",
        repeatable=False,
    )
    async def handler(_ctx: CallContext, args: Short) -> Done:
        world.effects.append(("mail.send", args.text))
        return Done(id="1")

    return handler


@pytest.mark.guarantee("A2")
async def test_in_the_same_world_in_another_process_the_approved_call_runs_once(database: str) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()], reword=True) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, settled.answer, codes) == ("succeeded", "Done.", ["ok"])
        assert run.world.effects == [("mail.send", "hello")]


@pytest.mark.guarantee("A1", "D2")
@pytest.mark.parametrize(
    ("how", "code"), [("renamed", "tool_unavailable"), ("gone", "tool_unavailable"), ("stricter", "tool_changed")]
)
async def test_a_tool_that_is_another_by_now_does_not_run(database: str, how: str, code: str) -> None:
    run = await waiting(database)
    tools = {"renamed": [run.world.send("mail.post")], "gone": [], "stricter": [stricter(run.world)]}[how]
    async with run.somewhere(tools) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes, run.world.effects) == ("succeeded", [code], [])


@pytest.mark.guarantee("J2", "J3")
@pytest.mark.parametrize("how", ["renamed", "stricter"])
async def test_an_effect_that_is_done_answers_as_done_whatever_became_of_its_tool(database: str, how: str) -> None:
    run = await waiting(database)
    leading: list[Harness] = []

    async def loses_the_run(_ctx: CallContext, _args: Any) -> Any:
        await execute(leading[0], "update agent.runs set fence = fence + 1")
        return Done(id="1")

    async with run.somewhere([run.world.send(does=loses_the_run)]) as h:
        leading.append(h)
        assert await h.advance(run.run_id) == "lost"  # the effect is committed, and no message tells of it
        assert [row["state"] for row in await journal(h, run.run_id)] == ["completed"]
        await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
    tools = [run.world.send("mail.post")] if how == "renamed" else [stricter(run.world)]
    async with run.somewhere(tools) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes) == ("succeeded", ["ok"])
        assert run.world.effects == [("mail.send", "hello")]


@pytest.mark.guarantee("D2")
@pytest.mark.parametrize(("in_flight", "code"), [(InFlight.FINISH, "ok"), (InFlight.REFUSE, "tool_unavailable")])
async def test_a_revoked_tool_finishes_or_is_refused_as_its_revocation_says(
    database: str, in_flight: InFlight, code: str
) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()]) as h:
        await h.platform.catalogue.release(
            run.organization_id,
            "mail.send",
            1,
            state=ReleaseState.REVOKED,
            in_flight=in_flight,
            user_id=run.requester,
        )
    async with run.somewhere([run.world.send()]) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes) == ("succeeded", [code])
        assert run.world.of("mail.send") == (["hello"] if code == "ok" else [])


Stripped = Literal["rule", "grant", "requester"]


@pytest.mark.guarantee("D2")
@pytest.mark.parametrize("stripped", ["rule", "grant", "requester"])
async def test_a_right_that_was_taken_meanwhile_denies_the_approved_call(database: str, stripped: Stripped) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()]) as h:
        match stripped:
            case "rule":
                draft = RuleDraft(name="no-mail", effect=RuleEffect.DENY, tool="mail.*", reason="closed for today")
                await h.platform.policy.save(draft, organization_id=run.organization_id)
            case "grant":
                await h.platform.catalogue.set_grant(run.organization_id, "tested", "mail.send", active=False)
            case "requester":
                await execute(h, "delete from agent.members where user_id = %(id)s", id=run.requester)
    async with run.somewhere([run.world.send()]) as h:
        if stripped == "requester":
            await execute(h, "delete from agent.members where user_id = %(id)s", id=run.requester)
        settled, codes = await run.resumed(h)
        assert (settled.state, codes, run.world.effects) == ("succeeded", ["denied"], [])
        assert [call["code"] for call in await h.calls(run.run_id) if call["code"]] == ["denied"]


@pytest.mark.guarantee("A5", "D2")
@pytest.mark.parametrize("how", ["removed", "lower role"])
async def test_an_approval_of_somebody_who_left_asks_again_and_the_next_one_counts(database: str, how: str) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()]) as h:
        if how == "removed":
            await execute(h, "delete from agent.members where user_id = %(id)s", id=run.approver)
        else:
            await h.platform.approval_store.put_member(run.organization_id, run.approver, Role.MEMBER)
    async with run.somewhere([run.world.send()]) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes, run.world.effects) == ("parked", [], [])
        other = uuid4()
        await h.platform.approval_store.put_member(run.organization_id, other, Role.APPROVER)
        await h.platform.approvals.decide(
            run.organization_id, settled.pending[0].id, user_id=other, verdict=Verdict.APPROVED
        )
        settled, codes = await run.resumed(h)
        assert (settled.state, codes, run.world.effects) == ("succeeded", ["ok"], [("mail.send", "hello")])


class Disconnected:
    """A vault that has the account no more."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    async def resolve(self, *, organization_id: UUID, provider: str, connection_id: UUID | None) -> Unconnected:
        del organization_id, provider, connection_id
        return Unconnected(code=self._code)


@pytest.mark.guarantee("D2")
@pytest.mark.parametrize(
    "code", [ErrorCode.CONNECTION_REVOKED, ErrorCode.CONNECTION_EXPIRED, ErrorCode.CONNECTION_REQUIRED]
)
async def test_an_account_that_is_gone_is_told_before_anything_is_claimed(database: str, code: ErrorCode) -> None:
    run = await waiting(database)
    port: ConnectionPort = Disconnected(code)
    async with run.somewhere([run.world.send()], connections=port) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes, run.world.effects) == ("succeeded", [str(code)], [])
        assert await journal(h, run.run_id) == []


@pytest.mark.guarantee("J6", "D3")
async def test_an_account_the_vendor_disowns_in_the_call_leaves_no_claim_and_the_approval_stands(database: str) -> None:
    run = await waiting(database)

    async def disowned(_ctx: CallContext, _args: Any) -> Any:
        raise ConnectionUnusable("the vendor took the account away", code=ErrorCode.CONNECTION_REVOKED)

    async with run.somewhere([run.world.send(does=disowned)]) as h:
        settled, codes = await run.resumed(h)
        assert (settled.state, codes) == ("succeeded", ["connection_revoked"])
        assert await journal(h, run.run_id) == []
        assert [effect["kind"] for effect in (await h.tree(run.run_id)).effects] == ["released"]


@pytest.mark.guarantee("W4")
@pytest.mark.parametrize("how", ["another format", "no message at all"])
async def test_a_history_of_an_older_format_ends_the_run_and_nothing_of_it_runs(database: str, how: str) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()]) as h:
        change = "format = 'agno.message/0'" if how == "another format" else "body = '[]'::bytea"
        await execute(h, f"update agent.run_messages set {change}")
        settled = await h.settle(run.run_id)
        assert (settled.state, settled.error_code, run.world.effects) == ("failed", "history_unreadable", [])
        await nothing_open(h, run.run_id)
        assert await journal(h, run.run_id) == []


@pytest.mark.guarantee("W4", "D2")
async def test_a_run_whose_model_no_deployment_has_any_more_ends_with_a_reason(database: str) -> None:
    run = await waiting(database)
    async with run.somewhere([run.world.send()]) as h:
        await execute(h, "update agent.runs set definition = jsonb_set(definition, '{model}', '\"of yesterday\"')")
        settled = await h.settle(run.run_id)
        assert (settled.state, settled.error_code) == ("failed", "program_fault")
        assert run.world.effects == [("mail.send", "hello")]  # what was approved was done before the model was needed
        await nothing_open(h, run.run_id)
        principal = Principal(organization_id=run.organization_id, user_id=run.requester)
        with pytest.raises(ProgramFault, match="of yesterday"):
            await h.platform.runs.start(
                h.agent.model_copy(update={"model": "of yesterday"}), "Go.", principal=principal, request_key="new"
            )
