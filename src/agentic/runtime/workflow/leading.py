"""Leading one node: its rows, its lease, its one call, and how that ends. Everything happens inside one durable step.

Where this process dies, the step is run again, here or elsewhere: the lease runs out, and the journal says what the call came to. What
ended is answered from the node's row, so a replay makes no call twice (J1, ADR 0033).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

import sentry_sdk

from agentic.contract.clock import Clock
from agentic.contract.errors import (
    ApprovalRequired,
    ClaimInFlight,
    ClaimLost,
    LeaseLost,
    ProgramFault,
    RunEnded,
    StorageUnavailable,
)
from agentic.contract.faults import where
from agentic.contract.principal import Principal
from agentic.contract.results import ErrorCode, ToolResult
from agentic.contract.tool_patterns import names_remote
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.lease import kept
from agentic.runtime.agent.money import before_segment, unpriced
from agentic.runtime.agent.timings import Timings, fault_wait_s
from agentic.runtime.workflow.ending import NodeEnd, ended_by, ended_with, failed, over, refused
from agentic.runtime.workflow.errors import NodeRetry
from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.identity import NodeCall, node_id
from agentic.runtime.workflow.phases import Done, Failed, Later, Parked, Partial, read_stored, stored
from agentic.runtime.workflow.slices import Look
from agentic.services.runs.models import Append, LedRun, Moved, RunMessage, Unpriced
from agentic.services.runs.ports import RunStore
from agentic.services.runs.workflows import RESULT, LedNode, NewContainer, NewNode, NodeView, WorkflowStore
from agentic.services.tools.arriving import Arrivals, NothingArrives
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.contracts import missing_contract
from agentic.services.tools.invoker import ToolInvoker
from agentic.services.tools.models import FrozenTool, Mode
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.records import SpanRecord, SpanStatus, Trail
from agentic.services.tools.registry import ToolRegistry

_log = logging.getLogger(__name__)
FORMAT = "agentic.workflow.1"
_AGAIN_S = 1.0
Flush = Callable[[Sequence[UUID]], Awaitable[None]]
_Phase = Done | Parked | Later | Failed | Partial


@dataclass(frozen=True, kw_only=True, slots=True)
class _Led:
    """A node under our lease."""

    led: LedRun
    inv: ToolInvocation
    stop: SegmentStop
    call: NodeCall

    @property
    def tool(self) -> FrozenTool | None:
        return self.inv.tools.get(self.call.tool)


class NodeLeader:
    """Leads the nodes of workflows."""

    def __init__(
        self,
        *,
        workflows: WorkflowStore,
        runs: RunStore,
        invoker: ToolInvoker,
        registry: ToolRegistry,
        clock: Clock,
        flush: Flush,
        timings: Timings | None = None,
        environment: Literal["live", "frozen"] = "live",
        arrivals: Arrivals | None = None,
    ) -> None:
        self._workflows = workflows
        self._runs = runs
        self._invoker = invoker
        self._registry = registry
        self._clock = clock
        self._flush = flush
        self._timings = timings or Timings()
        self._environment = environment
        self._arrivals: Arrivals = arrivals or NothingArrives()

    async def run(self, flow: Flow, call: NodeCall) -> _Phase:
        """Make the node's call, or find what became of it.

        Raises:
            NodeRetry: the service behind the tool was busy; the same call may be made again.
            StorageUnavailable: the database went away; the lease runs out by itself.
        """
        opened = await self._open(flow, call)
        return opened if isinstance(opened, _Phase) else await self._lead(opened, call)

    async def give_up(self, flow: Flow, call: NodeCall, code: ErrorCode) -> _Phase:
        """End the node of a call that was tried as often as its function allows."""
        opened = await self._open(flow, call)
        if isinstance(opened, _Phase):
            return opened
        node = await self._node(opened.led, call)
        return await self._finish(node, refused(refusal(code), None))

    async def look(self, flow: Flow, node: UUID) -> Look:
        """Whether the node has anything to wait for."""
        view = await self._workflows.look(flow.principal.organization_id, flow.container, node)
        if view is None:
            return Look(over=True, within_s=0)
        waits = view.open and not view.cancelled and view.state == "parked" and not view.due
        return Look(over=not waits, within_s=view.within_s)

    async def ended(self, flow: Flow) -> str | None:
        """Why the workflow is over, or stopping; ``None`` while it goes on."""
        view = await self._workflows.look(flow.principal.organization_id, flow.container, flow.container)
        if view is None or (view.open and not view.cancelled and not view.overdue):
            return None
        return "cancelled" if view.open and view.cancelled else "deadline" if view.open else _why(view)

    # -- opening ------------------------------------------------------------------------------------------------------------------

    async def _open(self, flow: Flow, call: NodeCall) -> LedNode | _Phase:
        organization_id = flow.principal.organization_id
        node = NewNode(id=node_id(flow.container, call.node), name=call.node, digest=call.digest)
        seen = await self._workflows.look(organization_id, flow.container, node.id)
        if seen is not None and (seen.state is not None or not seen.open) and not seen.due:
            return _standing(seen, call)
        container = await self._container(flow, first=seen is None)
        opened = await self._workflows.open(container, node, lease_s=self._timings.lease_s)
        return opened if isinstance(opened, LedNode) else _standing(opened, call)

    async def _container(self, flow: Flow, *, first: bool) -> NewContainer:
        if first and names_remote(flow.tools):
            await self._arrivals.refresh(flow.principal.organization_id)
        specs = await self._registry.specs_for_session(flow, flow.principal) if first else []
        return NewContainer(
            id=flow.container,
            organization_id=flow.principal.organization_id,
            user_id=flow.principal.user_id,
            workflow=flow.definition,
            request_key=flow.request_key,
            lane=str(flow.lane),
            tools=[{"name": spec.name, "contract_hash": spec.contract_hash, "mode": str(spec.mode)} for spec in specs],
            contracts=specs,
            ceilings=flow.ceilings,
            trust=flow.trust,
            deadline_s=flow.deadline_s,
        )

    async def _node(self, led: LedRun, call: NodeCall) -> _Led:
        specs = await self._runs.contracts([str(tool["contract_hash"]) for tool in led.tools])
        tools: dict[str, FrozenTool] = {}
        for listed in led.tools:
            contract_hash, name = str(listed["contract_hash"]), str(listed["name"])
            spec = specs.get(contract_hash) or missing_contract(contract_hash=contract_hash, name=name)
            tools[name] = FrozenTool(spec=spec, mode=Mode(str(listed["mode"])))
        if names_remote([call.tool]):
            await self._arrivals.refresh(led.lease.organization_id)
        stop = SegmentStop()
        inv = ToolInvocation(
            principal=Principal(organization_id=led.lease.organization_id, user_id=led.user_id, scopes=tuple(tools)),
            run_id=led.lease.run_id,
            root_run_id=led.root_run_id,
            definition=led.definition_name,
            fence=led.lease.fence,
            tools=tools,
            context_trust=led.context_trust,
            environment=self._environment,
            parent_span_id=led.segment_id,
            cancelled=stop.cancelled,
            trail=Trail(),
        )
        return _Led(led=led, inv=inv, stop=stop, call=call)

    # -- leading ------------------------------------------------------------------------------------------------------------------

    async def _lead(self, opened: LedNode, call: NodeCall) -> _Phase:
        led = opened.led
        node = await self._node(led, call)
        ended = over(led, out_of_calls=opened.out_of_calls, max_attempts=self._timings.max_attempts_without_progress)
        if ended is not None:
            return await self._finish(node, ended)
        spent = before_segment(led)
        if spent is not None:
            return await self._finish(node, ended_by(spent))
        task = asyncio.create_task(self._call(node))
        async with kept(
            led.lease, store=self._runs, stop=node.stop, timings=self._timings, clock=self._clock, segment=task
        ):
            try:
                return await task
            except asyncio.CancelledError:
                if node.stop.lost:
                    return _soon()
                task.cancel()
                await asyncio.wait({task})  # an answer in flight is stored before the lease is let go
                raise

    async def _call(self, node: _Led) -> _Phase:
        call = ToolCall(
            tool=node.call.tool,
            arguments_text=node.call.arguments_text,
            step_path=node.call.node,
            origin="workflow",
            argument_trust=node.call.trust,
        )
        try:
            result = await self._invoker.invoke(call, node.inv)
        except ApprovalRequired as asked:
            self._close(node, SpanStatus.OK, "parked")
            moved = await self._runs.park(
                node.led.lease, _append(node), [asked.request], expires_s=self._timings.approval_expires_s
            )
            return await self._moved(moved, Parked())
        except ClaimInFlight as busy:
            return await self._release(node, due_at=busy.due_at)
        except LeaseLost:
            return _soon()
        except ClaimLost:
            return await self._release(node, due_in_s=0, orderly=False)
        except RunEnded as ended:
            return await self._finish(node, ended_by(ended))
        except StorageUnavailable:
            raise
        except ProgramFault as fault:
            _report(fault, node)
            return await self._finish(node, failed("program_fault", str(fault)))
        except Exception as fault:  # noqa: BLE001 - whatever it was, the node comes back, and fails as a crash loop in the end
            _report(fault, node)
            wait_s = fault_wait_s(self._timings, node.led.attempts_without_progress)
            return await self._release(node, due_in_s=wait_s, orderly=False)
        return await self._answered(node, result)

    async def _answered(self, node: _Led, result: ToolResult) -> _Phase:
        end = ended_with(result, None if node.tool is None else node.tool.spec)
        if isinstance(end, NodeEnd):
            return await self._finish(node, end)
        await self._release(node, due_in_s=0)
        raise NodeRetry(end)

    # -- ways out -----------------------------------------------------------------------------------------------------------------

    async def _finish(self, node: _Led, end: NodeEnd) -> _Phase:
        succeeded = end.run.state == "succeeded"
        self._close(node, SpanStatus.OK if succeeded else SpanStatus.ERROR, end.run.error_code or end.run.state)
        answer = RunMessage(id=RESULT, role="tool", body=stored(end.phase), trust=end.trust)
        moved = await self._runs.finish(node.led.lease, _append(node, answer), end.run)
        if isinstance(moved, Unpriced):
            return await self._uncounted(node, moved)
        return await self._moved(moved, end.phase)

    async def _uncounted(self, node: _Led, request: Unpriced) -> _Phase:
        """A tree that holds an agent's request nobody can count; its answer is written, and this node says why it is not used (D4)."""
        refused = unpriced(request)
        moved = await self._runs.finish(node.led.lease, _append(node), ended_by(refused).run)
        assert not isinstance(moved, Unpriced)  # only a success is held back
        return await self._moved(moved, Failed(code=refused.code, message=str(refused)))

    async def _release(
        self, node: _Led, *, due_at: datetime | None = None, due_in_s: float | None = None, orderly: bool = True
    ) -> _Phase:
        self._close(node, SpanStatus.OK if orderly else SpanStatus.ERROR, "released")
        moved = await self._runs.release(
            node.led.lease, _append(node), due_at=due_at, due_in_s=due_in_s, orderly=orderly
        )
        if moved is None or moved.due_at is None:
            return await self._moved(moved, _soon())
        return await self._moved(moved, Later(due_at=moved.due_at))

    async def _moved(self, moved: Moved | None, phase: _Phase) -> _Phase:
        """A phase that counts; where the lease was lost, the row says at the next look what does."""
        if moved is None:
            return _soon()
        if moved.nudge is not None:
            await self._flush([moved.nudge])
        return phase

    def _close(self, node: _Led, status: SpanStatus, code: str) -> None:
        """Close the segment's span; the statement that gives the lease back follows."""
        node.stop.letting_go = True
        led = node.led
        node.inv.trail.spans.append(
            SpanRecord(
                id=led.segment_id,
                parent_id=None,
                kind="segment",
                name=f"segment {led.lease.fence}",
                started_at=led.leased_at,
                ended_at=max(self._clock.now(), led.leased_at),
                status=status,
                code=None if status is SpanStatus.OK else code,
                attributes={"end": code, "node": node.call.node},
            )
        )


def _append(node: _Led, *messages: RunMessage) -> Append:
    return Append(format=FORMAT, messages=messages, trail=node.inv.trail.take())


def _standing(view: NodeView, call: NodeCall) -> _Phase:
    """What a node that cannot be led now means for its function."""
    if view.digest is not None and view.digest != call.digest:
        return Failed(
            code="node_reused",
            message=f"{call.node} stands for another call of this run; give each call a node of its own, and compute what changes "
            "from replay to replay in a step",
        )
    if view.result is not None and view.state in ("succeeded", "failed", "cancelled"):
        return read_stored(view.result)
    if not view.open or view.state in ("succeeded", "failed", "cancelled"):
        code = view.error_code or _why(view)
        return Failed(code=code, message="the workflow is over")
    if view.state == "parked" and not view.due:
        return Failed(code="cancelled", message="the workflow is being cancelled") if view.cancelled else Parked()
    return Later(due_at=max(view.due_at, datetime.now(UTC) + timedelta(seconds=_AGAIN_S)))


def _why(view: NodeView) -> str:
    if view.container_error is not None:
        return view.container_error
    return "over" if view.container_state == "succeeded" else "cancelled"


def _soon() -> Later:
    return Later(due_at=datetime.now(UTC) + timedelta(seconds=_AGAIN_S))


def _report(fault: Exception, node: _Led) -> None:
    """Tell operators."""
    _log.error("node %s of run %s met a fault: %s", node.call.node, node.led.root_run_id, where(fault))
    sentry_sdk.capture_message(f"run {node.led.lease.run_id} met a fault: {type(fault).__name__}", level="error")
