"""A metered call: its bound is held before it runs, and what it cost takes the bound's place when it ends (M1, M2, M3, M4)."""

import asyncio
import dataclasses
import json
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
import sentry_sdk

from agentic.contract.errors import NotFound, StorageUnavailable
from agentic.contract.results import ErrorCode
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.script import Turn
from agentic.services.tools.calls import ToolCall
from agentic.services.tools.context import CallContext
from agentic.services.tools.default_invoker import DefaultToolInvoker
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.meter import Meter
from agentic.testing import Call, Calls, FakeClock, Harness, Say, harness
from core_world import Done, World, journal, rows
from money import FREE, ceiling, holds, leases_end, lines, set_price, spent, states

SAVE = Calls([Call("notes.save", {"text": "milk"})])
LOOK = Calls([Call("crm.search", {"text": "milk"})])
METERED: dict[str, Any] = {"metered": True, "cost_bound": "3.00"}
KINDS = pytest.mark.parametrize("kind", ["read", "write"])
Reports = Sequence[tuple[str, str, str | None]]


def pays(*reports: tuple[str, str, str | None], then: Exception | None = None) -> Any:
    """A handler that reports (quantity, unit, cost) and answers, or fails."""

    async def does(ctx: CallContext, _args: Any) -> Any:
        for quantity, unit, cost in reports:
            ctx.report_usage(Decimal(quantity), unit, cost=None if cost is None else Decimal(cost))
        if then is not None:
            raise then
        return Done(id="secret of the vendor")

    return does


def metered(world: World, kind: str, does: Any, **declared: Any) -> Any:
    make = world.read if kind == "read" else world.write
    return make(does=does, **{**METERED, **declared})


def script(kind: str, times: int = 1) -> list[Turn]:
    return [*([LOOK if kind == "read" else SAVE] * times), Say("Done.")]


async def answers(h: Harness, run_id: UUID) -> list[str]:
    """What the model read of its calls."""
    return [text for role, text in await h.messages(run_id) if role == "tool"]


async def codes(h: Harness, run_id: UUID) -> list[str | None]:
    """The codes of the calls in the tree."""
    return [span["code"] for span in await h.calls(run_id)]


@KINDS
@pytest.mark.guarantee("M1", "M3")
async def test_one_successful_vendor_response_writes_one_row_and_its_id_reaches_the_tool_span(
    database: str, kind: str
) -> None:
    world = World()
    tool = metered(world, kind, pays(("3", "credit", None)))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        await set_price(h, "0.005", provider=tool.spec.name.split(".")[0])
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        [line] = await lines(h, run_id)
        assert (line["quantity"], line["unit"], line["cost"]) == (Decimal(3), "credit", Decimal("0.015"))
        assert line["price_row"] is not None
        assert (line["ok"], line["estimated"], line["error"]) == (True, False, None)
        [span] = await h.calls(run_id)
        assert span["attributes"]["usage.id"] == str(line["id"])
        assert line["span_id"] == span["id"]
        assert await states(h, run_id) == ["settled"]


@KINDS
async def test_an_organization_s_own_price_goes_before_everybody_s(database: str, kind: str) -> None:
    tool = metered(World(), kind, pays(("2", "credit", None)))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        provider = tool.spec.name.split(".")[0]
        await set_price(h, "0.10", provider=provider, item=tool.spec.name)
        await set_price(h, "0.07", provider=provider, of=h.organization_id)
        run_id = await h.start()
        await h.settle(run_id)
        assert await spent(h, run_id) == Decimal("0.14")


@KINDS
@pytest.mark.guarantee("M2", "D3")
async def test_a_metered_call_is_refused_when_the_run_is_already_over_its_cost_ceiling(
    database: str, kind: str
) -> None:
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "9.50")), cost_bound="10.00")
    turns: list[Turn] = [
        Calls([Call(tool.spec.name, {"text": "first"})]),
        Calls([Call(tool.spec.name, {"text": "second"})]),
        Say("Done."),
    ]
    async with harness(tools=[tool], script=turns, database_url=database, ceilings=ceiling("10.00"), usage=FREE) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "budget_exhausted")
        assert [text for _, text in world.effects] == ["first"]
        assert await codes(h, run_id) == [None, "budget_exhausted"]
        assert await spent(h, run_id) == Decimal("9.50")
        assert await states(h, run_id) == ["settled"]
        assert len(await journal(h, run_id)) == (0 if kind == "read" else 1)  # the refused claim never happened


@KINDS
@pytest.mark.guarantee("M2")
async def test_a_bound_that_just_fits_is_held_and_the_next_cent_is_refused(database: str, kind: str) -> None:
    """At the ceiling nothing more starts, not even for nothing; below it a call may use the whole rest."""
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "3.00")), cost_bound="3.00")
    free = world.read("crm.free", does=pays(("1", "credit", "0")), metered=True, cost_bound="0")
    turns: list[Turn] = [*script(kind)[:1], Calls([Call("crm.free", {"text": "any"})]), Say("Done.")]
    async with harness(
        tools=[tool, free], script=turns, database_url=database, ceilings=ceiling("3.00"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "budget_exhausted"
        assert [name for name, _ in world.effects] == [tool.spec.name]


async def test_what_was_refused_for_money_stops_the_run_and_is_no_business_of_the_model(database: str) -> None:
    world = World()
    tool = world.read(does=pays(("1", "credit", "1")), **METERED)
    async with harness(
        tools=[tool], script=script("read"), database_url=database, ceilings=ceiling("2.99"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "budget_exhausted"
        assert world.effects == []
        assert not any("partial_reason" in text for text in await answers(h, run_id))
        assert (await lines(h, run_id), await holds(h, run_id)) == ([], [])


@KINDS
@pytest.mark.guarantee("M2", "D4")
async def test_a_metered_call_with_no_root_run_reaches_no_handler_and_writes_no_usage_row(
    database: str, kind: str
) -> None:
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "1")))
    async with harness(tools=[tool], script=[Say("Done.")], database_url=database) as h:
        taken = await h.platform.run_store.take(h.organization_id, await h.start(), lease_s=60)
        assert taken is not None
        inv = (await h.platform.leader._open(taken, SegmentStop())).inv
        call = ToolCall(tool=tool.spec.name, arguments_text='{"text": "milk"}')
        with pytest.raises(NotFound):
            await h.platform.invoker.invoke(call, dataclasses.replace(inv, run_id=uuid4()))
        assert world.effects == []
        assert (
            await rows(h, "select id from agent.ai_usage_log union all select id from agent.usage_reservations") == []
        )


async def test_a_preview_performs_no_write_no_send_and_no_metered_call(database: str) -> None:
    seen: list[CallContext] = []

    async def preview(ctx: CallContext, _args: Any) -> str:
        seen.append(ctx)
        await ctx.before_first_byte()
        ctx.report_usage(1, "credit", cost=Decimal(1))
        return "A letter."

    world = World()
    tool = world.send(**METERED, approval_preview=True, preview=preview)
    async with harness(tools=[tool], script=[Calls([Call("mail.send", {"text": "hi"})])], database_url=database) as h:
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        assert approval.shown == "A letter."
        assert [(ctx.idempotency_key, ctx.epoch, ctx.lease_expires_at) for ctx in seen] == [(None, None, None)]
        assert (world.effects, await journal(h, run_id)) == ([], [])
        assert (await lines(h, run_id), await holds(h, run_id)) == ([], [])


@KINDS
async def test_a_stop_that_a_handler_returns_is_data_like_any_other(database: str, kind: str) -> None:
    async def does(ctx: CallContext, _args: Any) -> Any:
        ctx.report_usage(1, "credit", cost=Decimal(1))
        return {"id": "1", "stop": "fault", "meta": {"partial_reason": "budget_exhausted"}}

    tool = metered(World(), kind, does)
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        [answer] = await answers(h, run_id)
        assert json.loads(answer)["data"]["stop"] == "fault"


@KINDS
@pytest.mark.guarantee("M1")
async def test_a_retryable_upstream_failure_writes_no_usage_row(database: str, kind: str) -> None:
    tool = metered(World(), kind, pays(then=RetryableUpstreamError("busy")))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        assert await lines(h, run_id) == []
        assert await states(h, run_id) == ["released"]


@KINDS
@pytest.mark.guarantee("M1")
async def test_a_policy_or_accrual_refusal_runs_before_the_handler_and_writes_none(database: str, kind: str) -> None:
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "1")), max_batch_size=None)
    bad = Calls([Call(tool.spec.name, {"text": 3}), Call(tool.spec.name, {"text": "dear"})])
    async with harness(
        tools=[tool], script=[bad, Say("Done.")], database_url=database, ceilings=ceiling("1"), usage=FREE
    ) as h:
        run_id = await h.start()
        await h.settle(run_id)
        assert await codes(h, run_id) == ["invalid_input", "budget_exhausted"]
        assert world.effects == []
        assert (await lines(h, run_id), await holds(h, run_id)) == ([], [])


@KINDS
@pytest.mark.guarantee("M1")
async def test_a_refusal_of_the_domain_that_cost_something_is_counted(database: str, kind: str) -> None:
    class Gone(Exception):
        pass

    tool = metered(
        World(), kind, pays(("1", "credit", "0.20"), then=Gone("no such thing")), refusals={Gone: ErrorCode.NOT_FOUND}
    )
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await spent(h, run_id) == Decimal("0.20")
        assert await states(h, run_id) == ["settled"]
        assert await codes(h, run_id) == ["not_found"]


@KINDS
@pytest.mark.parametrize(
    ("reports", "cause"),
    [
        ([], "no_report"),
        ([("3", "credit", None)], "no_price"),
        ([("1", "credit", "0.5"), ("3", "page", None)], "no_price"),
        ([("NaN", "credit", None)], "no_price"),
        ([("-1", "credit", "1")], "no_price"),
        ([("1", "credit", "Infinity")], "no_price"),
    ],
    ids=["nothing reported", "no price", "one of two unpriced", "no number", "less than nothing", "boundless"],
)
@pytest.mark.guarantee("M4", "J4")
async def test_a_charge_that_the_meter_cannot_count_returns_no_vendor_data(
    database: str, kind: str, reports: Reports, cause: str
) -> None:
    world = World()
    tool = metered(world, kind, pays(*reports))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "internal_error")
        assert "secret of the vendor" not in str(await h.messages(run_id)) + str(await h.tree(run_id))
        [line] = await lines(h, run_id)
        assert (line["cost"], line["estimated"], line["error"]) == (Decimal("3.00"), True, cause)
        assert await states(h, run_id) == ["settled"]
        if kind == "write":  # it happened, and a replay does not do it again
            [claim] = await journal(h, run_id)
            assert (claim["state"], claim["outcome_status"]) == ("completed", "ok")
            assert b"secret of the vendor" not in claim["output"]


@pytest.mark.guarantee("M4", "D4")
async def test_a_meter_fault_raises_and_returns_no_vendor_data(database: str) -> None:
    """The database is gone when a read's cost is to be stored: the answer is nobody's, and the hold counts as spent."""
    world = World()
    tool = world.read(does=pays(("1", "credit", "1.00")), **METERED)
    async with harness(tools=[tool], script=script("read"), database_url=database) as h:
        ledger: Any = h.platform.invoker._meter._ledger
        end_read = ledger.end_read
        lost: list[bool] = []

        async def drops(**asked: Any) -> bool:
            if len(lost) < 3:
                lost.append(True)
                raise StorageUnavailable("the line dropped")
            return bool(await end_read(**asked))

        ledger.end_read = drops
        run_id = await h.start()
        with pytest.raises(StorageUnavailable):
            await h.advance(run_id)
        assert await answers(h, run_id) == []
        await leases_end(h, run_id)
        assert await h.platform.sweeper.runs() >= 1
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 2
        assert sorted(line["cost"] for line in await lines(h, run_id)) == [Decimal("1.00"), Decimal("3.00")]
        assert await states(h, run_id) == ["settled", "settled"]


@KINDS
@pytest.mark.guarantee("D4")
async def test_a_meter_that_does_not_answer_lets_nothing_run(database: str, kind: str) -> None:
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "1")))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:

        async def is_gone(*_asked: Any, **_more: Any) -> Any:
            raise StorageUnavailable("the line dropped")

        ledger: Any = h.platform.invoker._meter._ledger
        ledger.hold_read = ledger.claim_metered = is_gone
        run_id = await h.start()
        with pytest.raises(StorageUnavailable):
            await h.advance(run_id)
        assert world.effects == []
        assert (await lines(h, run_id), await holds(h, run_id)) == ([], [])


@pytest.mark.guarantee("M1", "M3")
@pytest.mark.parametrize("landed", [True, False], ids=["commit landed", "commit lost"])
@pytest.mark.parametrize("step", ["hold_read", "end_read"])
async def test_a_line_that_drops_at_a_commit_of_the_meter_counts_once(database: str, step: str, landed: bool) -> None:
    world = World()
    tool = world.read(does=pays(("1", "credit", "1.00")), **METERED)
    async with harness(tools=[tool], script=script("read"), database_url=database) as h:
        ledger: Any = h.platform.invoker._meter._ledger
        real = getattr(ledger, step)
        dropped: list[bool] = []

        async def drops(**asked: Any) -> Any:
            if not dropped:
                dropped.append(True)
                if landed:
                    assert await real(**asked)
                raise StorageUnavailable("the line dropped")
            return await real(**asked)

        setattr(ledger, step, drops)
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 1
        assert await spent(h, run_id) == Decimal("1.00")
        assert await states(h, run_id) == ["settled"]


@KINDS
@pytest.mark.guarantee("D4")
async def test_a_deployment_without_a_meter_runs_no_metered_call(database: str, kind: str) -> None:
    world = World()
    tool = metered(world, kind, pays(("1", "credit", "1")))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        invoker = h.platform.invoker
        assert isinstance(invoker, DefaultToolInvoker)
        invoker._meter = invoker._execution._meter = Meter()
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "internal_error")
        assert world.effects == []
        assert await codes(h, run_id) == ["internal_error"]
        assert (await lines(h, run_id), await holds(h, run_id)) == ([], [])


async def test_many_metered_calls_that_meet_the_same_wiring_fault_produce_one_sentry_report_and_one_log_line_each(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def capture(message: str, **_more: Any) -> None:
        told.append(message)

    monkeypatch.setattr(sentry_sdk, "capture_message", capture)
    tool = World().read(does=pays(("3", "credit", None)), **METERED)
    other = World().read("crm.other", does=pays(), **METERED)
    async with harness(tools=[tool, other], script=script("read"), database_url=database) as h:
        for _ in range(3):
            await h.settle(await h.start())
        faults = [message for message in told if "cannot count" in message]
        assert len(faults) == 1
        assert faults[0].startswith(
            "the meter cannot count the metered tool crm.search as declared: no price; 'agentic prices set "
        )
        assert caplog.text.count("the meter cannot count the metered tool crm.search") == 3
        records = [record for record in caplog.records if "cannot count" in record.message]
        assert {record.levelno for record in records} == {logging.WARNING}  # Sentry makes an event of every error


@KINDS
async def test_a_report_above_the_bound_is_recorded_as_it_is_and_told(
    database: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    tool = metered(World(), kind, pays(("1", "credit", "3.40")))
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await spent(h, run_id) == Decimal("3.40")
        assert "above its bound" in caplog.text


@KINDS
async def test_what_a_tool_that_is_not_metered_reports_is_priced_where_a_price_covers_it(
    database: str, kind: str
) -> None:
    does = pays(("3", "credit", None), ("2", "page", None))
    tool = World().read(does=does) if kind == "read" else World().write(does=does)
    async with harness(tools=[tool], script=script(kind), database_url=database) as h:
        await set_price(h, "0.005", provider=tool.spec.name.split(".")[0])
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        found = {line["unit"]: (line["cost"], line["price_row"] is not None) for line in await lines(h, run_id)}
        assert found == {"credit": (Decimal("0.015"), True), "page": (None, False)}


@KINDS
@pytest.mark.parametrize(
    ("quantity", "cost", "stands"),
    [
        ("2", None, (Decimal(2), None, True)),
        ("2", "0.3", (Decimal(2), Decimal("0.3"), True)),
        ("NaN", None, (Decimal(0), None, False)),
    ],
    ids=["without money", "with money", "no number"],
)
async def test_a_tool_that_is_not_metered_may_report_and_is_never_refused(
    database: str, kind: str, quantity: str, cost: str | None, stands: tuple[Any, ...]
) -> None:
    does = pays((quantity, "page", cost))
    tool = World().read(does=does) if kind == "read" else World().write(does=does)
    async with harness(
        tools=[tool], script=script(kind), database_url=database, ceilings=ceiling("100"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        [line] = await lines(h, run_id)
        assert (line["quantity"], line["cost"], line["ok"]) == stands
        assert await holds(h, run_id) == []


@pytest.mark.guarantee("M3")
async def test_a_replay_of_a_completed_metered_call_charges_nothing(database: str) -> None:
    world = World()
    tool = world.write(does=pays(("1", "credit", "6")), metered=True, cost_bound="6")
    async with harness(
        tools=[tool], script=script("write", 3), database_url=database, ceilings=ceiling("6.01"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 1
        assert await spent(h, run_id) == Decimal(6)
        assert await states(h, run_id) == ["settled"]
        assert [span["attributes"].get("replayed", False) for span in await h.calls(run_id)] == [False, True, True]


@KINDS
@pytest.mark.guarantee("M1")
async def test_a_call_whose_time_was_up_while_its_money_was_held_costs_nothing(database: str, kind: str) -> None:
    world, clock = World(), FakeClock()
    tool = metered(world, kind, pays(("1", "credit", "1")), timeout_s=5)
    async with harness(tools=[tool], script=script(kind), database_url=database, clock=clock) as h:
        ledger: Any = h.platform.invoker._meter._ledger
        step = "hold_read" if kind == "read" else "claim_metered"
        real = getattr(ledger, step)

        async def late(*asked: Any, **more: Any) -> Any:
            held = await real(*asked, **more)
            clock.advance(6)
            return held

        setattr(ledger, step, late)
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.effects == []
        assert await codes(h, run_id) == ["timeout"]
        assert (await states(h, run_id), await lines(h, run_id)) == (["released"], [])


@pytest.mark.guarantee("M1")
async def test_a_paid_read_that_ran_out_of_time_is_held_until_its_lease_is_over_and_then_spent(database: str) -> None:
    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        await asyncio.Event().wait()

    tool = World().read(does=hangs, timeout_s=1.5, **METERED)
    async with harness(tools=[tool], script=script("read"), database_url=database, claim_grace_s=600) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await codes(h, run_id) == ["timeout"]
        await h.platform.sweeper.runs()
        assert (await states(h, run_id), await lines(h, run_id)) == (["held"], [])
        await leases_end(h, run_id)
        for _ in range(2):
            await h.platform.sweeper.runs()
        [line] = await lines(h, run_id)
        assert (line["cost"], line["estimated"], line["ok"], line["error"]) == (
            Decimal("3.00"),
            True,
            False,
            "no_report",
        )
        assert line["span_id"] == (await h.calls(run_id))[0]["id"]
        assert await states(h, run_id) == ["settled"]


@pytest.mark.guarantee("M1", "M4")
async def test_an_answer_that_comes_after_its_hold_was_counted_is_not_counted_twice_and_not_given(
    database: str,
) -> None:
    """A worker that stood still for longer than the lease of what it held."""
    world = World()
    made: list[Harness] = []

    async def slow(ctx: CallContext, _args: Any) -> Any:
        [h] = made
        if len(world.effects) == 1:
            await leases_end(h, ctx.run_id)
            await h.platform.journal.sweep_holds()
        ctx.report_usage(1, "credit", cost=Decimal("1.00"))
        return Done(id="secret of the vendor")

    tool = world.read(does=slow, **METERED)
    async with harness(tools=[tool], script=script("read"), database_url=database) as h:
        made.append(h)
        run_id = await h.start()
        assert await h.advance(run_id) == "lost"
        [line] = await lines(h, run_id)
        assert (line["cost"], line["estimated"]) == (Decimal("3.00"), True)
        assert await answers(h, run_id) == []


@pytest.mark.guarantee("M1", "J3")
@pytest.mark.parametrize("happened", [True, False])
async def test_an_uncertain_call_keeps_what_it_holds_until_an_operator_says_what_happened(
    database: str, happened: bool
) -> None:
    world = World()
    tool = world.write(does=pays(("1", "credit", "1"), then=ConnectionResetError()), **METERED)
    async with harness(tools=[tool], script=script("write"), database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "outcome_unknown: notes.save"
        assert (await states(h, run_id), await lines(h, run_id)) == (["held"], [])
        [call] = await h.uncertain(run_id)
        await h.platform.journal.settle(
            h.organization_id, call.ref, happened=happened, user_id=h.user_id, evidence="asked the vendor"
        )
        assert await states(h, run_id) == ["settled" if happened else "released"]
        found = [(line["cost"], line["estimated"], line["error"]) for line in await lines(h, run_id)]
        assert found == ([(Decimal("3.00"), True, "no_report")] if happened else [])


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize(
    ("found", "costs", "estimated"),
    [(("1", "credit", "1.25"), Decimal("1.25"), False), (None, Decimal("3.00"), True)],
    ids=["tells its cost", "does not know it"],
)
async def test_a_probe_that_finds_the_effect_settles_with_what_it_tells_or_at_the_bound(
    database: str, found: tuple[str, str, str] | None, costs: Decimal, estimated: bool
) -> None:
    async def probe(ctx: CallContext, _args: Any) -> Any:
        if found is not None:
            ctx.report_usage(Decimal(found[0]), found[1], cost=Decimal(found[2]))
        return Done(id="found")

    tool = World().write(does=pays(then=ConnectionResetError()), probe=probe, **METERED)
    async with harness(tools=[tool], script=script("write"), database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        [line] = await lines(h, run_id)
        assert (line["cost"], line["estimated"]) == (costs, estimated)
        assert "found" in (await answers(h, run_id))[0]


async def test_a_probe_that_finds_nothing_frees_what_was_held_and_the_next_attempt_holds_anew(database: str) -> None:
    world = World()

    async def first_breaks(ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) == 1:
            raise ConnectionResetError
        ctx.report_usage(1, "credit", cost=Decimal(2))
        return Done(id="2")

    async def probe(_ctx: CallContext, _args: Any) -> Any:
        return None

    tool = world.write(does=first_breaks, probe=probe, **METERED)
    async with harness(
        tools=[tool], script=script("write"), database_url=database, ceilings=ceiling("3.00"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await states(h, run_id) == ["released", "settled"]
        assert await spent(h, run_id) == Decimal(2)


async def test_an_idempotent_call_that_may_have_been_charged_is_spent_and_made_again_at_its_own_cost(
    database: str,
) -> None:
    world = World()

    async def first_breaks(ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) == 1:
            raise ConnectionResetError
        ctx.report_usage(1, "credit", cost=Decimal(2))
        return Done(id="2")

    tool = world.write(does=first_breaks, idempotency="idempotent", **METERED)
    async with harness(tools=[tool], script=script("write"), database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert sorted(line["cost"] for line in await lines(h, run_id)) == [Decimal(2), Decimal("3.00")]
        assert await states(h, run_id) == ["settled", "settled"]


async def test_a_call_that_fails_before_anything_left_costs_nothing(database: str) -> None:
    world = World()

    async def first_breaks(ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) == 1:
            raise ValueError("before the first byte")
        ctx.report_usage(1, "credit", cost=Decimal(2))
        return Done(id="2")

    tool = world.write(does=first_breaks, watermark="at_transport", **METERED)
    async with harness(
        tools=[tool], script=script("write"), database_url=database, ceilings=ceiling("3.00"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await states(h, run_id) == ["released", "settled"]
        assert await spent(h, run_id) == Decimal(2)


@pytest.mark.guarantee("M2", "J7")
async def test_a_conditional_call_that_is_repeated_holds_its_bound_once(database: str) -> None:
    world = World()

    async def breaks_twice(ctx: CallContext, _args: Any) -> Any:
        ctx.report_usage(1, "credit", cost=Decimal(2))
        if len(world.effects) < 3:
            raise ConnectionResetError
        return Done(id="3")

    tool = world.write(does=breaks_twice, idempotency="conditional", vendor_key_ttl_s=3600, **METERED)
    async with harness(
        tools=[tool], script=script("write"), database_url=database, ceilings=ceiling("3.00"), usage=FREE
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 3
        assert await states(h, run_id) == ["settled"]
        assert await spent(h, run_id) == Decimal(2)


async def test_a_price_of_another_organization_does_not_count(database: str) -> None:
    tool = World().read(does=pays(("1", "credit", None)), **METERED)
    async with harness(tools=[tool], script=script("read"), database_url=database) as h:
        await set_price(h, "0.1")
        await set_price(h, "0.5", of=uuid4())
        run_id = await h.start()
        await h.settle(run_id)
        assert await spent(h, run_id) == Decimal("0.1")
