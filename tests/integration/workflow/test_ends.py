"""Every run of a workflow ends in a state that names why, whatever becomes of its function (W4)."""

from datetime import timedelta

import pytest
from pydantic import JsonValue

from agentic.contract.principal import RunCeilings
from agentic.runtime.workflow import NodeFailed, WorkflowContext, WorkflowPartial, tool_step
from core_world import World
from workflow_flows import flow_app
from workflow_stage import Stage, stage

pytestmark = pytest.mark.guarantee("W4")


async def note(ctx: WorkflowContext, node: str = "note") -> JsonValue:
    """Save a note named after its node."""
    return (await tool_step(ctx, node, "notes.save", {"text": node})).data  # type: ignore[no-any-return]


async def container(s: Stage) -> tuple[str, str | None, str | None]:
    """State, code and partial reason of the workflow."""
    (run,) = [run for run in await s.runs() if run["node"] == "container"]
    return run["state"], run["error_code"], run["partial_reason"]


async def test_a_node_that_is_refused_fails_the_function_and_names_its_code(database: str) -> None:
    world = World()

    async def body(ctx: WorkflowContext) -> JsonValue:
        await tool_step(ctx, "odd", "notes.save", {"wrong": 1})
        return await note(ctx)

    async with stage(database, flow_app(body, [world.write()], retries=3)) as s:
        await s.send("flow")
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "odd: invalid_input" in str(run.result)
        assert await container(s) == ("failed", "invalid_input", None)
        assert world.effects == []


async def test_a_workflow_that_has_used_its_calls_ends_with_what_it_has(database: str) -> None:
    world = World()

    async def lets_go(ctx: WorkflowContext) -> JsonValue:
        await note(ctx, "one")
        return await note(ctx, "two")

    async def catches(ctx: WorkflowContext) -> JsonValue:
        first = await note(ctx, "one")
        try:
            await tool_step(ctx, "two", "notes.save", {"text": "two"}, continue_on_error=True)
        except WorkflowPartial as partial:
            return [first, partial.reason]
        raise AssertionError("the second call was made")

    ceilings = RunCeilings(max_tool_calls=1)
    async with stage(database, flow_app(lets_go, [world.write()], ceilings=ceilings)) as s:
        await s.send("flow")
        (run,) = await s.ended()
        assert run.result == {"partial_reason": "limit_reached"}
        assert await container(s) == ("succeeded", None, "limit_reached")
    async with stage(database, flow_app(catches, [world.write()], ceilings=ceilings)) as s:
        await s.send("flow")
        run = (await s.ended(2))[-1]
        assert run.result == [{"id": "notes.save-2"}, "limit_reached"]


async def test_a_fault_of_the_platform_stops_the_workflow_whatever_it_would_go_on_with(database: str) -> None:
    world = World()

    async def body(ctx: WorkflowContext) -> JsonValue:
        result = await tool_step(ctx, "paid", "paid.look", {"text": "a"}, continue_on_error=True)
        return str(result.error)

    async def silent(ctx: object, args: object) -> dict[str, str]:
        return {"id": "x"}

    tool = world.read("paid.look", silent, metered=True, cost_bound="1.00")
    async with stage(database, flow_app(body, [tool])) as s:
        s.platform.invoker._meter._pricing = None  # as in a deployment that was joined without prices
        await s.send("flow")
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "paid: internal_error" in str(run.result)
        assert await container(s) == ("failed", "internal_error", None)


async def test_a_body_that_breaks_ends_its_workflow_when_the_function_is_given_up(database: str) -> None:
    world = World()

    async def breaks(ctx: WorkflowContext) -> JsonValue:
        await note(ctx)
        raise LookupError("a bug")

    async with stage(database, flow_app(breaks, [world.write()], retries=1)) as s:
        await s.send("flow")

        async def ended() -> bool:
            return await container(s) == ("failed", "function_failed", None) if await s.runs() else False

        await s.until(ended)
        assert world.of("notes.save") == ["note"]


async def test_a_program_fault_of_the_body_ends_it_at_once(database: str) -> None:
    world = World()

    async def misuses(ctx: WorkflowContext) -> JsonValue:
        await note(ctx)
        return await note(ctx, "no/slash")

    async with stage(database, flow_app(misuses, [world.write()], retries=3)) as s:
        await s.send("flow")
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert await container(s) == ("failed", "program_fault", None)


@pytest.mark.parametrize("answer", [{"x": object()}, float("nan")])
async def test_a_body_that_returns_no_json_fails_with_its_function(database: str, answer: JsonValue) -> None:
    async def body(ctx: WorkflowContext) -> JsonValue:
        await note(ctx)
        return answer

    async with stage(database, flow_app(body, [World().write()], retries=3)) as s:
        await s.send("flow")
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "returns plain JSON data" in str(run.result)
        assert await container(s) == ("failed", "program_fault", None)


async def test_a_workflow_whose_function_is_gone_ends_at_its_deadline_and_its_question_with_it(database: str) -> None:
    world = World()

    async def waits(ctx: WorkflowContext) -> JsonValue:
        return (await tool_step(ctx, "mail", "mail.send", {"text": "a"}, continue_on_error=True)).data  # type: ignore[no-any-return]

    async with stage(database, flow_app(waits, [world.send()], with_on_failure=False)) as s:
        await s.send("flow")
        await s.waiting("mail/approval-0/wait-0")
        await s.execute("update agent.runs set deadline_at = clock_timestamp()")
        assert await s.platform.sweeper.runs() > 0
        assert await container(s) == ("failed", "deadline", None)
        assert await s.states() == {"container": "failed", "mail": "failed"}
        assert [row["status"] for row in await s.rows("select status from agent.approvals")] == ["cancelled"]
        await s.deliver()  # the function, were it there, hears of it at once
        (run,) = await s.ended()
        assert run.status == "failed"
        assert "mail: deadline" in str(run.result)
        assert await s.platform.sweeper.runs() == 0
        assert world.effects == []


async def test_a_cancelled_workflow_makes_no_further_call_and_ends_cancelled(database: str) -> None:
    world = World()

    async def waits(ctx: WorkflowContext) -> JsonValue:
        await note(ctx)
        await tool_step(ctx, "mail", "mail.send", {"text": "a"}, continue_on_error=True)
        return await note(ctx, "last")

    async with stage(database, flow_app(waits, [world.send(), world.write()])) as s:
        await s.send("flow")
        await s.waiting("mail/approval-0/wait-0")
        (run_id,) = [run["id"] for run in await s.runs() if run["node"] == "container"]
        assert await s.platform.runs.cancel(s.organization_id, run_id, user_id=s.user_id)
        await s.platform.sweeper.runs()
        await s.deliver()
        await s.ended()
        assert await container(s) == ("cancelled", None, None)
        assert await s.states() == {"container": "cancelled", "note": "succeeded", "mail": "cancelled"}
        assert world.of("notes.save") == ["note"]


async def test_a_cancelled_workflow_that_no_sweep_has_seen_stops_at_its_next_node(database: str) -> None:
    world = World()

    async def sleeps(ctx: WorkflowContext) -> JsonValue:
        await note(ctx)
        await ctx.step.sleep("nap", timedelta(hours=1))
        return await note(ctx, "last")

    async with stage(database, flow_app(sleeps, [world.write()])) as s:
        await s.send("flow")
        await s.waiting("nap")
        (run_id,) = [run["id"] for run in await s.runs() if run["node"] == "container"]
        await s.platform.runs.cancel(s.organization_id, run_id)
        s.jump(3601)
        await s.ended()
        assert await container(s) == ("cancelled", None, None)
        assert world.of("notes.save") == ["note"]


async def test_a_function_that_goes_on_without_its_parked_node_takes_the_question_back(database: str) -> None:
    world = World()

    async def races(ctx: WorkflowContext) -> JsonValue:
        try:
            await ctx.side_by_side(
                lambda: tool_step(ctx, "mail", "mail.send", {"text": "a"}),
                lambda: tool_step(ctx, "odd", "notes.save", {"wrong": 1}),
            )
        except NodeFailed as failed:
            return failed.reason
        return None

    async with stage(database, flow_app(races, [world.send(), world.write()])) as s:
        await s.send("flow")
        (run,) = await s.ended()
        assert run.result == "invalid_input"
        assert await s.states() == {"container": "succeeded", "mail": "cancelled", "odd": "failed"}
        assert [row["status"] for row in await s.rows("select status from agent.approvals")] == ["cancelled"]
