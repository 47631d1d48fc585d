"""The body of a workflow, from its first call to the end of its container (W4).

The function is called from the top at every step, so what stands here is done again each time: the end is one compare-and-set, which
the second time finds done.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import inngest

from agentic.contract.bounds import bound
from agentic.contract.encoding import encode
from agentic.contract.errors import ProgramFault
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import plain
from agentic.runtime.workflow.context import WorkflowContext
from agentic.runtime.workflow.declaration import Workflow
from agentic.runtime.workflow.errors import NodeFailed, WorkflowPartial
from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.leading import NodeLeader
from agentic.services.provider_jobs.ports import JobReader
from agentic.services.runs.models import RunEnd
from agentic.services.runs.workflows import WorkflowStore

MAX_ANSWER_BYTES = 4 * 1024
Body = Callable[[WorkflowContext], Awaitable[JsonValue]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflows:
    """Runs the bodies of workflows for functions that you declare yourself."""

    store: WorkflowStore
    leader: NodeLeader
    jobs: JobReader

    async def run(self, ctx: inngest.Context, workflow: Workflow, body: Body) -> JsonValue:
        """Run the body, and end the workflow's run as the body ends.

        Args:
            ctx: as the SDK calls the function.
            workflow: whose calls these are.
            body: calls ``tool_step`` and the SDK's steps; catches no ``BaseException``, by which the SDK leaves it at every step.

        Returns:
            What the body returned, for the function to return. Uncaught ``WorkflowPartial`` becomes ``{"partial_reason": …}``.

        Raises:
            NodeFailed: a node failed and the body let it; the SDK calls the function no more.
            NonRetriableError: the body is at fault in a way that no retry mends.
            Exception: whatever else the body raised; the SDK's retries apply, and ``on_failure`` ends the run when they are used up.
        """
        flow = _flow(workflow, ctx.event, ctx.run_id)
        try:
            answer = _json(
                await body(WorkflowContext(sdk=ctx, flow=flow, leader=self.leader, jobs=self.jobs)), workflow
            )
        except WorkflowPartial as partial:
            await self._end(flow, RunEnd(state="succeeded", partial_reason=partial.reason))
            return {"partial_reason": partial.reason}
        except NodeFailed as failed:
            await self._end(flow, _failed(failed.reason))
            raise
        except inngest.NonRetriableError:
            await self._end(flow, _failed("function_failed"))
            raise
        except inngest.StepError:  # a step of the body's own, tried as often as its function allows
            await self._end(flow, _failed("step_failed"))
            raise
        except ProgramFault as fault:
            await self._end(flow, _failed("program_fault"))
            raise inngest.NonRetriableError(str(fault)) from fault
        shown = bound(plain(answer), MAX_ANSWER_BYTES).value
        await self._end(flow, RunEnd(state="succeeded", answer=encode(shown).decode()))
        return answer

    def on_failure(self, workflow: Workflow) -> Callable[[inngest.Context], Awaitable[None]]:
        """What to hand to ``create_function(on_failure=…)``: ends the run of a function that its server has given up.

        Without it such a run ends at the workflow's deadline.
        """

        async def end(ctx: inngest.Context) -> None:
            began = ctx.event.data["event"]
            assert isinstance(began, dict)
            flow = _flow(workflow, inngest.Event.model_validate(began), str(ctx.event.data["run_id"]))
            await self._end(flow, _failed("function_failed"))

        return end

    async def _end(self, flow: Flow, end: RunEnd) -> None:
        await self.store.end(flow.principal.organization_id, flow.container, end)


def _flow(workflow: Workflow, event: inngest.Event, run_id: str) -> Flow:
    return Flow(
        principal=workflow.acts_for(event),
        definition=workflow.definition,
        run_id=run_id,
        tools=workflow.tools,
        ceilings=workflow.ceilings,
        trust=workflow.trust,
        lane=workflow.lane,
        deadline_s=workflow.deadline_s,
    )


def _json(answer: JsonValue, workflow: Workflow) -> JsonValue:
    """What the body returned, if the SDK can send it: otherwise the function would fail after its run has succeeded."""
    try:
        json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramFault(
            f"the workflow {workflow.name} returns plain JSON data; what it returned is not ({error})"
        ) from error
    return answer


def _failed(code: str) -> RunEnd:
    return RunEnd(state="cancelled") if code == "cancelled" else RunEnd(state="failed", error_code=code)
