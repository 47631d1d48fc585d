"""Many metered calls at once: together they never pass the ceiling, whatever becomes of each (M2, M3)."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from agentic.bootstrap import App, Platform, open_platform
from agentic.contract.errors import LeaseLost
from agentic.contract.results import ToolResult
from agentic.runtime.agent.aborts import SegmentStop
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.testing import Harness, RecordingBus, Say, harness
from core_world import Done, World, execute, rows
from money import FREE, ceiling, holds, leases_end, lines, spent, states

WATCH = (
    "create table public.totals (total numeric not null)",
    """create function public.note_total() returns trigger language plpgsql as $$
    begin
        insert into public.totals
        select coalesce(sum(u.amount), 0) from (
            select l.cost as amount from agent.ai_usage_log l where l.root_run_id = new.root_run_id
            union all
            select r.amount from agent.usage_reservations r where r.root_run_id = new.root_run_id and r.state = 'held'
        ) u;
        return null;
    end $$""",
    """create constraint trigger watched after insert or update on agent.usage_reservations
    deferrable initially deferred for each row execute function public.note_total()""",
    """create constraint trigger watched after insert on agent.ai_usage_log
    deferrable initially deferred for each row execute function public.note_total()""",
)
"""Notes what a tree has spent and holds at each commit that changes it."""


async def led(h: Harness, run_id: UUID) -> ToolInvocation:
    """Take the run's lease, and hand out the identity its calls run under."""
    taken = await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    assert taken is not None
    return (await h.platform.leader._open(taken, SegmentStop())).inv


@asynccontextmanager
async def workers(h: Harness, tools: Sequence[Tool], count: int) -> AsyncIterator[list[Platform]]:
    """So many deployments of the same tools on the same database, each with connections of its own."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                open_platform(
                    App(tools=tools, connections=FixedConnections()),
                    h.database_url,
                    bus=RecordingBus(),
                    invoker_settings=InvokerSettings(claim_grace_s=600),
                )
            )
            for _ in range(count)
        ]


def call(tool: str, text: str) -> ToolCall:
    return ToolCall(tool=tool, arguments_text=json.dumps({"text": text}))


def codes(results: Sequence[Any]) -> Counter[str]:
    """What became of calls, by their codes."""
    return Counter(
        ("ok" if each.error is None else str(each.error.code)) if isinstance(each, ToolResult) else type(each).__name__
        for each in results
    )


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize("kind", ["read", "write"])
async def test_of_eight_at_once_three_are_admitted_and_each_end_frees_or_keeps_its_own(
    database: str, kind: str
) -> None:
    """Field case 31: the limit is 10.00 and each may cost 3.00."""
    world, admitted, gate = World(), asyncio.Event(), asyncio.Event()

    async def does(ctx: CallContext, _args: Any) -> Any:
        number = len(world.effects)
        if number == 3:
            admitted.set()
        await gate.wait()
        match number:
            case 1:
                raise RetryableUpstreamError("busy")
            case 2:
                ctx.report_usage(1, "credit", cost=Decimal("3.40"))
            case 3:
                pass  # never reports
            case _:
                ctx.report_usage(1, "credit", cost=Decimal("0.60"))
        return Done(id=str(number))

    name = "crm.search" if kind == "read" else "notes.save"
    tool = (world.read if kind == "read" else world.write)(does=does, metered=True, cost_bound="3.00")
    async with harness(
        tools=[tool], script=[Say("Done.")], database_url=database, ceilings=ceiling("10.00"), usage=FREE
    ) as h:
        inv = await led(h, await h.start())
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            tasks = [group.create_task(h.platform.invoker.invoke(call(name, str(n)), inv)) for n in range(8)]
            refused: list[ToolResult] = []
            for ended in asyncio.as_completed(tasks):
                refused.append(await ended)
                if len(refused) == 5:
                    break
            assert codes(refused) == {"budget_exhausted": 5}
            assert {(each.stop, each.error is None or each.error.retryable) for each in refused} == {
                ("budget_exhausted", False)
            }
            await admitted.wait()
            assert (await states(h, inv.run_id)) == ["held"] * 3
            gate.set()
        assert len(world.effects) == 3
        assert await spent(h, inv.run_id) == Decimal(
            "6.40"
        )  # 3.40 as reported, 3.00 for the silent one, nothing for the failed
        assert sorted(await states(h, inv.run_id)) == ["released", "settled", "settled"]
        after = [await h.platform.invoker.invoke(call(name, f"after {n}"), inv) for n in range(3)]
        assert codes(after) == {"ok": 2, "budget_exhausted": 1}  # 6.40 + 0.60 + 0.60 leaves less than 3.00
        assert await spent(h, inv.run_id) == Decimal("7.60")


@pytest.mark.guarantee("M3")
async def test_a_tenth_a_hundred_times_is_ten(database: str) -> None:
    async def does(ctx: CallContext, _args: Any) -> Any:
        for _ in range(100):
            ctx.report_usage(1, "credit", cost=Decimal("0.1"))
        return Done(id="1")

    tool = World().read(does=does, metered=True, cost_bound="10")
    async with harness(
        tools=[tool], script=[Say("Done.")], database_url=database, ceilings=ceiling("10"), usage=FREE
    ) as h:
        inv = await led(h, await h.start())
        assert (await h.platform.invoker.invoke(call("crm.search", "a"), inv)).ok
        assert len(await lines(h, inv.run_id)) == 100
        assert await spent(h, inv.run_id) == Decimal(10)
        again = await h.platform.invoker.invoke(call("crm.search", "b"), inv)
        assert again.stop == "budget_exhausted"


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_becomes_of_many_at_once_no_commit_stands_above_the_ceiling(database: str, seed: int) -> None:
    """Three pools, reads and writes, failures, time-outs and cancellations."""
    fate = random.Random(seed)
    fates = {
        str(n): fate.choice(["pays", "pays", "refused", "raises", "hangs", "silent", "stopped"]) for n in range(36)
    }

    started = {text: asyncio.Event() for text in fates}

    async def does(ctx: CallContext, args: Any) -> Any:
        started[args.text].set()
        match fates[args.text]:
            case "refused":
                raise RetryableUpstreamError("busy")
            case "raises":
                raise ConnectionResetError
            case "hangs" | "stopped":
                await asyncio.Event().wait()
            case "pays":
                ctx.report_usage(1, "credit", cost=Decimal("0.70"))
        return Done(id=args.text)

    world = World()
    declared: dict[str, Any] = {"metered": True, "cost_bound": "1.00", "timeout_s": 3}
    tools = [
        world.read("paid.look", does=does, **declared),
        world.write("paid.once", does=does, **declared),
        world.write("paid.again", does=does, idempotency="idempotent", **declared),
        world.write("paid.marked", does=does, watermark="at_transport", **declared),
    ]
    limit = Decimal("9.50")
    async with (
        harness(
            tools=tools, script=[Say("Done.")], database_url=database, ceilings=ceiling(str(limit)), usage=FREE
        ) as h,
        workers(h, tools, 2) as others,
    ):
        for statement in WATCH:
            await execute(h, statement)
        inv = await led(h, await h.start())
        platforms = [h.platform, *others]

        async def one(number: int) -> Any:
            tool = tools[number % len(tools)].spec.name
            invoking = asyncio.create_task(platforms[number % 3].invoker.invoke(call(tool, str(number)), inv))
            if fates[str(number)] == "stopped":
                running = asyncio.create_task(started[str(number)].wait())
                await asyncio.wait([invoking, running], return_when=asyncio.FIRST_COMPLETED)
                running.cancel()
                invoking.cancel()
            return await invoking

        async with asyncio.timeout(40):
            ends = await asyncio.gather(*(one(number) for number in range(36)), return_exceptions=True)
        seen = codes(ends)
        assert seen["budget_exhausted"] > 0
        ran = {text for _, text in world.effects}
        assert ran
        assert not [n for n, end in enumerate(ends) if codes([end])["budget_exhausted"] and str(n) in ran]
        [top] = await rows(h, "select max(total) as total, count(*) as commits from public.totals")
        assert top["commits"] >= len(ran)
        assert Decimal(0) < top["total"] <= limit
        await leases_end(h, inv.run_id)
        await h.platform.journal.sweep_holds()
        still = [hold for hold in await holds(h, inv.run_id) if hold["state"] == "held"]
        assert all(
            hold["owner"] == "claim" for hold in still
        )  # each with a claim that somebody takes over, sweeps or settles
        claims = await rows(
            h,
            "select concat_ws(':', organization_id, scope, key, epoch) as ref from agent.idempotency_keys where state <> 'completed'",
        )
        assert {hold["owner_ref"] for hold in still} == {claim["ref"] for claim in claims}
        assert await spent(h, inv.run_id) + sum(hold["amount"] for hold in still) <= limit


@pytest.mark.guarantee("M2")
async def test_two_runs_of_one_tree_share_the_ceiling_of_its_root(database: str) -> None:
    async def does(ctx: CallContext, _args: Any) -> Any:
        ctx.report_usage(1, "credit", cost=Decimal("1.00"))
        return Done(id="1")

    tool = World().read(does=does, metered=True, cost_bound="1.00")
    async with harness(
        tools=[tool], script=[Say("Done.")], database_url=database, ceilings=ceiling("5.00"), usage=FREE
    ) as h:
        root = await h.start()
        child = await h.start(agent=h.agent.model_copy(update={"ceilings": ceiling("100")}))
        await execute(
            h,
            "update agent.runs set root_run_id = %(root)s, parent_run_id = %(root)s, depth = 1 where id = %(child)s",
            root=root,
            child=child,
        )
        for statement in WATCH:
            await execute(h, statement)
        invs = [await led(h, run_id) for run_id in (root, child)]
        async with asyncio.timeout(30):
            ends = await asyncio.gather(
                *(h.platform.invoker.invoke(call("crm.search", str(n)), invs[n % 2]) for n in range(12))
            )
        assert codes(ends) == {"ok": 5, "budget_exhausted": 7}
        assert await spent(h, root) == Decimal("5.00")
        [top] = await rows(h, "select max(total) as total from public.totals")
        assert top["total"] == Decimal("5.00")


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize("kind", ["read", "write"])
async def test_a_worker_that_lost_its_run_holds_nothing(database: str, kind: str) -> None:
    world = World()
    tool = (world.read if kind == "read" else world.write)(metered=True, cost_bound="1.00")
    async with harness(tools=[tool], script=[Say("Done.")], database_url=database) as h:
        inv = await led(h, await h.start())
        preflight = h.platform.invoker._ledger.preflight

        async def then_loses_it(*args: Any, **more: Any) -> Any:
            found = await preflight(*args, **more)
            await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
            return found

        h.platform.invoker._ledger.preflight = then_loses_it  # type: ignore[method-assign]
        with pytest.raises(LeaseLost):
            await h.platform.invoker.invoke(call(tool.spec.name, "a"), inv)
        assert world.effects == []
        assert await holds(h, inv.run_id) == []
