"""Every end of a call, through the real invoker: once in the tree, once in telemetry, under the same code (docs/telemetry.md)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from agentic.contract.errors import ClaimInFlight
from agentic.contract.results import ErrorCode
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.checkpoint import Segment
from agentic.services.tools.calls import ToolCall
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.handlers.errors import DefiniteRefusal
from agentic.services.tools.models import FrozenTool
from agentic.services.tools.outcomes import OUTCOMES, PIPELINE_CODES
from agentic.services.tools.ports import Decision, PolicyQuestion
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute
from telemetry_recorder import RecordedSpan, Recording, recorded

SAVE = Calls([Call("notes.save", {"text": "milk"})])
MAIL = Calls([Call("mail.send", {"text": "hello"})])
HANDLER_CODES = sorted(set(ErrorCode) - PIPELINE_CODES)
ELSEWHERE = {
    ErrorCode.REJECTED,  # below, with a person
    ErrorCode.EXPIRED,
    ErrorCode.INTERNAL_ERROR,  # below, raised to the run
    ErrorCode.BUDGET_EXHAUSTED,  # needs a meter
    ErrorCode.CANCELLED,  # a cancelled run ends, and answers no call
}


async def lead(h: Harness) -> Segment:
    """A segment of a run of its own, whose calls the test makes."""
    run_id = await h.start()
    led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    assert led is not None
    return await h.platform.leader._open(led, SegmentStop())


async def invoke(h: Harness, segment: Segment, tool: str, arguments: str = '{"text": "x"}') -> None:
    await asyncio.wait_for(
        h.platform.invoker.invoke(ToolCall(tool=tool, arguments_text=arguments), segment.inv), timeout=20
    )


def frozen(segment: Segment, tool: str, **changed: Any) -> None:
    """Let the run have frozen another contract than the one that is live."""
    known = segment.inv.tools["notes.save"]
    spec = known.spec.model_copy(update=changed)
    segment.inv = replace(segment.inv, tools={**segment.inv.tools, tool: FrozenTool(spec=spec, mode=known.mode)})


def told_of(span: RecordedSpan) -> list[str]:
    """Names of the events of a call, without their common beginning."""
    return [name.removeprefix("tool.call.") for name, _ in span.events]


async def in_tree_and_telemetry(h: Harness, run_id: UUID, recording: Recording) -> list[str]:
    """The codes of the ended calls, after every row was found under its span's last event."""
    ended = [span for span in recording.calls() if "tool.outcome_status" in span.attributes]
    rows = {str(row["id"]): row for row in await h.calls(run_id)}
    codes = []
    for span in ended:
        row = rows[str(span.events[-1][1]["invocation_id"])]
        code = row["code"] or "ok"
        assert span.attributes.get("tool.reason_code", "ok") == code
        assert span.attributes["tool.outcome_status"] == row["attributes"]["tool.outcome_status"]
        codes.append(code)
    assert sum(recording.values("tool_calls_total")) == len(ended)
    return codes


def refusing(world: World, code: ErrorCode) -> Tool:
    """A read whose handler refuses under a code."""

    async def does(_ctx: CallContext, _args: Any) -> Any:
        raise DefiniteRefusal("no", code=code)

    return world.read(f"refused.{code}", does)


@pytest.mark.guarantee("D3")
async def test_a_handlers_refusal_is_in_the_tree_and_in_telemetry_whatever_its_code(database: str) -> None:
    world = World()
    tools = [refusing(world, code) for code in HANDLER_CODES]
    async with harness(tools=tools, script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        with recorded() as recording:
            for tool in tools:
                await invoke(h, segment, tool.spec.name)
        assert await h.platform.run_store.append(segment.lease, segment.take()) is not None
        assert await in_tree_and_telemetry(h, segment.inv.run_id, recording) == HANDLER_CODES
        for span, code in zip(recording.calls(), HANDLER_CODES, strict=True):
            assert told_of(span)[:3] == ["proposed", "authorized", "started"]
            assert span.attributes["tool.outcome_status"] == OUTCOMES[code].status
        assert len(recording.values("tool_duration_seconds")) == len(HANDLER_CODES)


class Items(BaseModel):
    items: list[str]


class Deny:
    """Denies one tool and allows the others."""

    async def decide(self, question: PolicyQuestion) -> Decision:
        effect = "deny" if question.spec.name == "notes.forbidden" else "allow"
        return Decision(effect=effect, rule_id="test", rule_version=1, reason="so")  # type: ignore[arg-type]


@pytest.mark.guarantee("D3")
async def test_what_the_invoker_concludes_is_in_the_tree_and_in_telemetry_with_and_without_a_handler(
    database: str,
) -> None:
    world = World()

    async def breaks(_ctx: CallContext, _args: Any) -> Any:
        raise ConnectionResetError("the line broke")

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        await asyncio.Event().wait()

    @internal_tool("notes.many", "Finds many.", batch_argument="items", max_batch_size=1)
    async def many(ctx: CallContext, args: Items) -> Done:
        return Done(id="1")

    tools = [
        world.write(),
        world.write("notes.forbidden"),
        world.write("notes.broken", breaks),
        world.read("notes.slow", hangs, timeout_s=0.05),
        many,
    ]
    async with harness(tools=tools, script=[Say("x")], database_url=database, policy=Deny()) as h:
        segment = await lead(h)
        with recorded() as recording:
            await invoke(h, segment, "drop_table")
            await invoke(h, segment, "notes.save", '{"words": 1}')
            await invoke(h, segment, "notes.many", '{"items": ["a", "b"]}')
            await invoke(h, segment, "notes.forbidden")
            await invoke(h, segment, "notes.broken")
            await invoke(h, segment, "notes.slow")
            await invoke(h, segment, "notes.save")
            frozen(segment, "notes.save", timeout_s=20)
            await invoke(h, segment, "notes.save")
            await invoke(h, segment, "notes.save", '{"text": "y"}')
            frozen(segment, "notes.gone", name="notes.gone")
            await invoke(h, segment, "notes.gone")
        assert await h.platform.run_store.append(segment.lease, segment.take()) is not None
        codes = await in_tree_and_telemetry(h, segment.inv.run_id, recording)
        assert PIPELINE_CODES - set(codes) == ELSEWHERE
        assert codes == [
            "unknown_tool",
            "invalid_input",
            "batch_too_large",
            "denied",
            "outcome_unknown",
            "timeout",
            "ok",
            "conflict",
            "tool_changed",
            "tool_unavailable",
        ]
        assert [told_of(span)[1:] for span in recording.calls()] == [
            [OUTCOMES[ErrorCode.UNKNOWN_TOOL].status],
            ["failed"],
            ["failed"],
            ["denied"],
            ["authorized", "started", "uncertain"],
            ["authorized", "started", "failed"],
            ["authorized", "started", "completed"],
            ["failed"],
            ["failed"],
            ["failed"],
        ]
        steps = {span.name for span in recording.spans if span.parent == "tool.execute"}
        assert steps == {"tool.validate", "policy.evaluate"}
        [denied] = [s for s in recording.spans if s.attributes.get("policy.effect") == "deny" and s.parent is not None]
        assert (denied.name, denied.attributes["policy.rule"]) == ("policy.evaluate", "test")
        assert len(recording.values("tool_uncertain_total")) == 1
        assert len(recording.values("tool_duration_seconds")) == 3  # what was refused before a handler has none


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize("how", ["approved", "rejected", "expired"])
async def test_a_pause_is_no_call_yet_and_what_follows_the_decision_is_one(database: str, how: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        with recorded() as recording:
            assert await h.advance(run_id) == "parked"
        [paused] = recording.calls()
        assert told_of(paused) == ["proposed"]
        assert (paused.status, recording.measured) == (None, [])
        if how == "expired":
            await execute(h, "update agent.approvals set expires_at = clock_timestamp()")
        else:
            await h.decide(run_id, how)  # type: ignore[arg-type]
        with recorded() as recording:
            assert (await h.settle(run_id)).state == "succeeded"
        code = "ok" if how == "approved" else how
        assert await in_tree_and_telemetry(h, run_id, recording) == [code]
        ends = ["authorized", "started", "completed"] if how == "approved" else ["denied"]
        assert told_of(recording.calls()[0]) == ["proposed", *ends]


@pytest.mark.guarantee("D3", "J1")
async def test_a_replay_is_in_the_tree_and_in_telemetry_and_nothing_of_it_is_counted_twice(database: str) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[SAVE, SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        with recorded() as recording:
            assert (await h.settle(run_id)).state == "succeeded"
        assert await in_tree_and_telemetry(h, run_id, recording) == ["ok", "ok"]
        first, replay = recording.calls()
        assert told_of(first) == ["proposed", "authorized", "started", "completed"]
        assert told_of(replay) == ["proposed", "completed"]
        assert [span.events[-1][1]["effect_sent"] for span in (first, replay)] == [True, False]
        assert len(recording.values("tool_duration_seconds")) == len(recording.values("tool_output_bytes")) == 1


@pytest.mark.guarantee("D3")
async def test_an_uncertain_call_opens_one_review_however_often_it_is_asked_for(database: str) -> None:
    world = World()

    async def breaks(_ctx: CallContext, _args: Any) -> Any:
        raise ConnectionResetError("the line broke")

    async with harness(tools=[world.write(does=breaks)], script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        with recorded() as recording:
            await invoke(h, segment, "notes.save")
            await invoke(h, segment, "notes.save")
        assert sum(recording.values("tool_calls_total")) == 2
        assert sum(recording.values("tool_uncertain_total")) == 1
        assert len(await h.uncertain(segment.inv.run_id)) == 1


@pytest.mark.guarantee("D3", "J3")
async def test_a_call_found_with_a_dead_worker_is_told_as_uncertain_and_not_as_started(database: str) -> None:
    world, entered = World(), asyncio.Event()

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    async with harness(tools=[world.write(does=hangs)], script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        with recorded() as recording:
            dies = asyncio.create_task(invoke(h, segment, "notes.save"))
            await asyncio.wait_for(entered.wait(), timeout=20)
            dies.cancel()
            with pytest.raises(asyncio.CancelledError):
                await dies
            assert recording.measured == []
            await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
            await invoke(h, segment, "notes.save")
        assert await in_tree_and_telemetry(h, segment.inv.run_id, recording) == ["outcome_unknown"]
        assert [told_of(span) for span in recording.calls()] == [
            ["proposed", "authorized", "started"],
            ["proposed", "uncertain"],
        ]
        assert recording.calls()[1].events[-1][1]["effect_sent"] is True
        assert len(recording.values("tool_uncertain_total")) == 1
        assert recording.values("tool_duration_seconds") == []


@pytest.mark.guarantee("D3", "J5")
async def test_what_the_sweep_hands_to_an_operator_is_told_and_counted_once(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, entered = World(), asyncio.Event()

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    async with harness(tools=[world.write(does=hangs)], script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        dies = asyncio.create_task(invoke(h, segment, "notes.save"))
        await asyncio.wait_for(entered.wait(), timeout=20)
        dies.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dies
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
        with recorded() as recording, caplog.at_level(logging.INFO, logger="agentic.events"):
            assert await h.platform.journal.sweep(grace_s=0) == 1
            assert await h.platform.journal.sweep(grace_s=0) == 0
        assert recording.measured == [("tool_uncertain_total", 1, {"name": "notes.save", "source": "builtin"})]
        [row] = await h.calls(segment.inv.run_id)
        [event] = [vars(record) for record in caplog.records if record.name == "agentic.events"]
        assert event["event_name"] == "tool.call.uncertain"
        assert (event["invocation_id"], event["run_id"]) == (str(row["id"]), str(segment.inv.run_id))
        assert (event["outcome_status"], event["reason_code"], event["effect_sent"]) == (
            "uncertain",
            "outcome_unknown",
            True,
        )
        assert (event["tool_version"], event["idempotency_class"]) == (1, "non_idempotent")
        assert row["attributes"]["tool.outcome_status"] == "uncertain"


async def test_a_claim_that_is_held_has_not_ended(database: str) -> None:
    world = World()

    async def breaks(ctx: CallContext, _args: Any) -> Any:
        await ctx.before_first_byte()
        raise ConnectionResetError("the line broke")

    tool = world.write(does=breaks, idempotency="conditional", vendor_key_ttl_s=3600, watermark="at_transport")
    async with harness(tools=[tool], script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        with recorded() as recording, pytest.raises(ClaimInFlight):
            await invoke(h, segment, "notes.save")
        [span] = recording.calls()
        assert told_of(span) == ["proposed", "authorized", "started"]
        assert recording.measured == []


@pytest.mark.parametrize("kind", ["read", "write"])
async def test_an_error_that_goes_up_to_the_run_is_told_as_the_end_of_its_attempt(database: str, kind: str) -> None:
    world = World()

    async def breaks(_ctx: CallContext, _args: Any) -> Any:
        raise ZeroDivisionError

    tool = (
        world.read("notes.go", breaks) if kind == "read" else world.write("notes.go", breaks, watermark="at_transport")
    )
    async with harness(tools=[tool], script=[Say("x")], database_url=database) as h:
        segment = await lead(h)
        with recorded() as recording, pytest.raises(ZeroDivisionError):
            await invoke(h, segment, "notes.go")
        assert await h.platform.run_store.append(segment.lease, segment.take()) is not None
        assert await in_tree_and_telemetry(h, segment.inv.run_id, recording) == ["internal_error"]
        [span] = recording.calls()
        assert told_of(span) == ["proposed", "authorized", "started", "failed"]


async def test_the_reads_of_a_turn_share_a_group_and_a_write_has_none(database: str) -> None:
    world = World()
    reads = Calls([Call("crm.search", {"text": "a"}), Call("crm.search", {"text": "b"})])
    script: Sequence[Any] = [reads, Calls([Call("crm.search", {"text": "c"}), *SAVE.calls]), Say("Done.")]
    async with harness(tools=[world.read(), world.write()], script=list(script), database_url=database) as h:
        run_id = await h.start()
        with recorded() as recording:
            assert (await h.settle(run_id)).state == "succeeded"
        groups = [span.attributes.get("tool.parallel_group") for span in recording.calls()]
        assert (groups[0], groups[3]) == (groups[1], None)
        assert len(set(groups)) == 3
        rows: list[Mapping[str, Any]] = await h.calls(run_id)
        assert sorted(str(row["attributes"].get("tool.parallel_group")) for row in rows) == sorted(map(str, groups))
