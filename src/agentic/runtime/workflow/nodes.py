"""One governed call as a durable step, and the wait for a person's decision about it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import assert_never

import inngest
from pydantic import BaseModel, JsonValue

from agentic.contract.events import EventName
from agentic.contract.results import ErrorCode, ToolResult
from agentic.contract.trust import Trust
from agentic.runtime.workflow.context import WorkflowContext
from agentic.runtime.workflow.declaration import checked_node
from agentic.runtime.workflow.errors import NodeFailed, WorkflowPartial, retried
from agentic.runtime.workflow.identity import NodeCall, arguments_text, node_id
from agentic.runtime.workflow.phases import Done, Failed, Later, Parked, Partial, read, recorded
from agentic.runtime.workflow.slices import Look
from agentic.runtime.workflow.waiting import wait

_Phase = Done | Parked | Later | Failed | Partial


async def tool_step(
    ctx: WorkflowContext,
    node: str,
    tool: str,
    arguments: Mapping[str, JsonValue] | BaseModel,
    *,
    trust: Trust = Trust.EXTERNAL,
    continue_on_error: bool = False,
) -> ToolResult:
    """Make one governed call, once, however often the function is called (J1).

    A call that needs a person waits for the decision, for as long as that takes; what was approved is what runs (A1). While the
    service behind the tool is busy the step fails, and the function's ``retries`` say how often it is tried again.

    Args:
        ctx: as the body of the workflow got it.
        node: unique within the function, and the same for the same call: 1 to 100 letters, digits, ``_``, ``.`` and ``-``. In a loop
            it needs the loop's variable.
        tool: platform name, one of the workflow's.
        arguments: JSON data, at most 256 KiB. The same at every replay, so what changes from call to call (the time, a random number)
            comes from a step of its own.
        trust: your label of the arguments. Anything that came from the event, or from an answer of a node, is as external as that was;
            rules and floors go by it, and nothing is inferred from the text.
        continue_on_error: answer a refusal or a failure instead of raising it. What stops the workflow is raised all the same: a
            fault of the platform, the budget, the cancellation, the deadline.

    Returns:
        The call's answer.

    Raises:
        NodeFailed: the call did not succeed. The SDK calls the function no more.
        WorkflowPartial: the workflow has used its budget or its calls. Catch it to end with what there is; uncaught, the function ends
            with the reason.
        ProgramFault: the node's id or the arguments cannot be used.
    """
    call = NodeCall(node=checked_node(node), tool=tool, arguments_text=arguments_text(arguments), trust=trust)
    attempt = 0
    while True:
        phase = await _phase(ctx, call, node if attempt == 0 else f"{node}/again-{attempt}")
        match phase:
            case Done():
                return _answered(node, phase.answer(), continue_on_error=continue_on_error)
            case Parked():
                await _decided(ctx, f"{node}/approval-{attempt}", node)
            case Later():
                await ctx.step.sleep_until(f"{node}/until-{attempt}", max(phase.due_at, datetime.now(UTC)))
            case Failed():
                raise NodeFailed(node, phase.code, phase.message)
            case Partial():
                raise WorkflowPartial(node, phase.reason)
            case _ as never:
                assert_never(never)
        attempt += 1


async def wait_for_approval(ctx: WorkflowContext, wait_id: str, node: str) -> None:
    """Wait until the question of a node is decided, has expired, or is asked no more; at once when there is none.

    ``tool_step`` waits by itself; this is for a function that wants to wait elsewhere than at the call.

    Args:
        wait_id: unique within the function, as a node's id.
        node: the node that asks.

    Raises:
        ProgramFault: the ids cannot be used.
    """
    await _decided(ctx, checked_node(wait_id), checked_node(node))


async def _phase(ctx: WorkflowContext, call: NodeCall, step_id: str) -> _Phase:
    async def run() -> dict[str, object]:
        return recorded(await ctx.leader.run(ctx.flow, call))

    try:
        return read(await ctx.step.run(step_id, run))
    except inngest.StepError as error:
        busy = retried(error)
        if busy is None:
            raise
    return await _given_up(ctx, call, f"{step_id}/given-up", busy)


async def _given_up(ctx: WorkflowContext, call: NodeCall, step_id: str, code: ErrorCode) -> _Phase:
    async def end() -> dict[str, object]:
        return recorded(await ctx.leader.give_up(ctx.flow, call, code))

    return read(await ctx.step.run(step_id, end))


async def _decided(ctx: WorkflowContext, wait_id: str, node: str) -> None:
    waited = node_id(ctx.flow.container, node)

    async def look(_: Look | None) -> Look:
        return await ctx.leader.look(ctx.flow, waited)

    await wait(ctx, wait_id, look, event=EventName.RUN_DECIDED, matches=f"async.data.run_id == '{waited}'")


def _answered(node: str, result: ToolResult, *, continue_on_error: bool) -> ToolResult:
    if result.error is None or continue_on_error:
        return result
    raise NodeFailed(node, result.error.code, result.error.message, result=result)
