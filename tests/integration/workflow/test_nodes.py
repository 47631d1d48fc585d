"""One governed call of a caller's function: decided live, made once, answered for good."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from agentic.bootstrap import workflows
from agentic.contract.principal import RunCeilings
from agentic.contract.trust import Trust
from agentic.runtime.agent.timings import Timings
from agentic.runtime.workflow import tool_step
from agentic.runtime.workflow.phases import Done, Failed, Later, Parked, Partial
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from core_world import World
from late_renewal import renewed_too_late
from workflow_flows import flow_app, flow_of, node, nothing
from workflow_stage import stage


@pytest.mark.guarantee("J1")
async def test_twenty_replays_of_a_step_at_once_make_one_call_and_all_get_its_answer(database: str) -> None:
    world = World()
    tools = [world.write(does=None)]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        first = await asyncio.gather(*(leader.run(flow, node("note", "notes.save")) for _ in range(20)))
        assert all(isinstance(phase, Done | Later) for phase in first)
        again = await asyncio.gather(*(leader.run(flow, node("note", "notes.save")) for _ in range(20)))
        assert {phase.result for phase in again if isinstance(phase, Done)} == {
            phase.result for phase in first if isinstance(phase, Done)
        }
        assert len(again) == 20 and all(isinstance(phase, Done) for phase in again)
        assert world.of("notes.save") == ["hello"]
        assert [run["node"] for run in await s.runs()] == ["container", "note"]


@pytest.mark.guarantee("J5")
@pytest.mark.parametrize("way_out", ["park", "finish"])
async def test_a_renewal_that_comes_after_a_node_gave_its_lease_back_stops_nothing(database: str, way_out: str) -> None:
    world = World()
    tools = [world.write(does=None), world.send()]
    quick = Timings(lease_s=2, renew_s=0.01)
    async with stage(database, flow_app(nothing, tools), serve=False, timings=quick) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        renewed_too_late(leader._runs, way_out)
        phase = await leader.run(flow, node("note", "mail.send" if way_out == "park" else "notes.save"))
        assert isinstance(phase, Parked if way_out == "park" else Done)


@pytest.mark.guarantee("J1")
async def test_a_node_that_is_used_for_another_call_fails_and_makes_none(database: str) -> None:
    world = World()
    tools = [world.write()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        assert isinstance(await leader.run(flow, node("note", "notes.save", "one")), Done)
        phase = await leader.run(flow, node("note", "notes.save", "two"))
        assert isinstance(phase, Failed) and phase.code == "node_reused"
        assert world.of("notes.save") == ["one"]


@pytest.mark.guarantee("D1", "D2")
async def test_a_grant_that_is_revoked_while_a_node_waits_stops_its_call_and_stays_revoked(database: str) -> None:
    world = World()
    tools = [world.send()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        assert await leader.run(flow, node("mail", "mail.send")) == Parked()
        await s.execute("update agent.grants set state = 'revoked', revoked_at = clock_timestamp()")
        await s.decide()
        phase = await leader.run(flow, node("mail", "mail.send"))
        assert isinstance(phase, Done)
        error = phase.answer().error
        assert error is not None and error.code == "denied"
        assert isinstance(await leader.run(flow, node("other", "mail.send")), Done)
        assert world.effects == []
        assert [row["state"] for row in await s.rows("select state from agent.grants")] == ["revoked"]


@pytest.mark.guarantee("D1", "T1")
async def test_a_tool_that_is_not_the_workflows_is_not_called_whoever_names_it(database: str) -> None:
    world = World()
    tools = [world.write(), world.send()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        flow = flow_of(s, tools[:1])
        phase = await workflows(s.platform).leader.run(flow, node("mail", "mail.send"))
        assert isinstance(phase, Done)
        error = phase.answer().error
        assert error is not None and error.code == "unknown_tool"
        assert world.effects == []


async def test_nobody_leads_the_runs_of_a_workflow_but_its_function(database: str) -> None:
    world = World()
    tools = [world.send()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        await leader.run(flow, node("mail", "mail.send"))
        await s.decide()
        for run in await s.runs():
            advanced = await s.platform.leader.advance(s.organization_id, run["id"])
            assert advanced.state == "idle"
        assert await s.platform.run_store.nudge_due(quiet_s=0, limit=10) == []
        assert await s.states() == {"container": "running", "mail": "parked"}


@pytest.mark.guarantee("D3")
async def test_what_a_call_answered_lowers_what_later_nodes_are_decided_under(database: str) -> None:
    world = World()
    tools = [world.read("web.fetch", output_trust="external"), world.write()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools, trust=Trust.INTERNAL)
        await leader.run(flow, node("before", "notes.save", "a", trust=Trust.INTERNAL))
        await leader.run(flow, node("page", "web.fetch", trust=Trust.INTERNAL))
        await leader.run(flow, node("after", "notes.save", "b", trust=Trust.INTERNAL))
        trusts = {run["node"]: run["context_trust"] for run in await s.runs()}
        assert trusts == {"container": "internal", "before": "internal", "page": "external", "after": "external"}


@pytest.mark.guarantee("M2")
async def test_nodes_side_by_side_cannot_pass_the_ceiling_of_their_workflow_together(database: str) -> None:
    async def costs(ctx: Any, args: Any) -> dict[str, str]:
        ctx.report_usage(1, "credit", cost=Decimal(3))
        return {"id": "paid"}

    world = World()
    tools = [world.read("paid.look", costs, metered=True, cost_bound="3.00")]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        flow = flow_of(s, tools, ceilings=RunCeilings(max_cost=Decimal(4)))
        leader = workflows(s.platform).leader
        phases = await asyncio.gather(*(leader.run(flow, node(f"look-{n}", "paid.look")) for n in range(4)))
        assert sorted(type(phase).__name__ for phase in phases) == ["Done", "Partial", "Partial", "Partial"]
        assert {phase.reason for phase in phases if isinstance(phase, Partial)} == {"budget_exhausted"}
        assert len(world.of("paid.look")) == 1
        (spent,) = await s.rows(
            "select sum(cost) as cost, count(distinct root_run_id) as trees from agent.ai_usage_log"
        )
        assert spent == {"cost": Decimal(3), "trees": 1}


@pytest.mark.guarantee("M2")
async def test_the_organizations_day_is_read_before_each_node(database: str) -> None:
    world = World()
    tools = [world.write()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        await s.execute(
            "insert into agent.spending_limits (organization_id, per_day) values (%(organization)s, 0)",
            organization=s.organization_id,
        )
        phase = await workflows(s.platform).leader.run(flow_of(s, tools), node("note", "notes.save"))
        assert phase == Partial(reason="budget_exhausted_day")
        assert world.effects == []


async def test_a_workflow_makes_no_more_calls_than_it_may_over_all_its_nodes(database: str) -> None:
    world = World()
    tools = [world.write()]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        flow = flow_of(s, tools, ceilings=RunCeilings(max_tool_calls=2))
        leader = workflows(s.platform).leader
        phases = [await leader.run(flow, node(f"n{n}", "notes.save", str(n))) for n in range(3)]
        assert all(isinstance(phase, Done) for phase in phases[:2])
        assert phases[2] == Partial(reason="limit_reached")


@pytest.mark.guarantee("W4")
async def test_a_handler_that_always_breaks_ends_its_node_as_a_crash_loop(database: str) -> None:
    async def breaks(ctx: Any, args: Any) -> Any:
        raise RuntimeError("broken")

    world = World()
    tools = [world.read("crm.search", breaks)]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        phases = []
        for _ in range(20):
            await s.execute("update agent.runs set due_at = null")
            phases.append(await leader.run(flow, node("find", "crm.search")))
            if not isinstance(phases[-1], Later):
                break
        assert isinstance(phases[-1], Failed) and phases[-1].code == "crash_loop"
        assert len(world.effects) == 5


@pytest.mark.guarantee("J6")
async def test_a_busy_service_is_tried_as_often_as_the_function_retries_and_then_answered(database: str) -> None:
    busy = {"times": 2}

    async def sometimes(ctx: Any, args: Any) -> dict[str, str]:
        if busy["times"] > 0:
            busy["times"] -= 1
            raise RetryableUpstreamError("busy")
        return {"id": "1"}

    world = World()
    tools = [world.write("notes.save", sometimes)]

    async def body(ctx: Any) -> Any:

        result = await tool_step(ctx, "note", "notes.save", {"text": "a"}, continue_on_error=True)
        return "done" if result.error is None else str(result.error.code)

    async with stage(database, flow_app(body, tools, retries=2)) as s:
        await s.send("flow")
        (run,) = await s.ended()
        assert run.result == "done"
        busy["times"] = 5
        await s.send("flow")
        run = (await s.ended(2))[-1]
        assert run.result == "retryable_upstream"
        assert busy["times"] == 2
        assert [state["state"] for state in await s.runs()] == ["succeeded", "succeeded", "succeeded", "failed"]


@pytest.mark.guarantee("J5")
async def test_a_worker_that_stalls_past_its_lease_writes_nothing_and_finds_what_the_next_one_did(
    database: str,
) -> None:
    stalled, go_on = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Any, args: Any) -> dict[str, str]:
        if not stalled.is_set():
            stalled.set()
            await go_on.wait()
        return {"id": "later one"}

    world = World()
    tools = [world.read("crm.search", slow)]
    async with stage(database, flow_app(nothing, tools), serve=False) as s:
        leader, flow = workflows(s.platform).leader, flow_of(s, tools)
        first = asyncio.create_task(leader.run(flow, node("find", "crm.search")))
        await stalled.wait()
        await s.execute("update agent.runs set lease_expires_at = clock_timestamp() where lease_expires_at is not null")
        second = await leader.run(flow, node("find", "crm.search"))
        assert isinstance(second, Done)
        assert isinstance(await first, Later)  # its renewal heard that another one leads
        assert await leader.run(flow, node("find", "crm.search")) == second
        assert len(await s.rows("select from agent.run_messages")) == 1
