"""The drain: the stored calls of a pause, in the model's order, each with its own decision (D5, ADR 0011).

At the first call that must ask, the pass stops running; the later ones of the turn are only decided, and those that must ask are
filed with it, so that a reviewer sees the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.errors import ApprovalRequired
from agentic.runtime.agent.checkpoint import Draining, Segment, answer_of, tool_call
from agentic.runtime.agent.ports import AgentLoop
from agentic.runtime.agent.stops import record_stop
from agentic.services.runs.models import Proposal
from agentic.services.tools.invoker import ToolInvoker
from agentic.services.tools.records import JobWait


@dataclass(frozen=True, kw_only=True, slots=True)
class Drained:
    """How a pass over the proposals ended: with ``questions`` to a person, at a job to wait for, or with every call answered."""

    questions: Sequence[ApprovalRequest] = ()
    job: JobWait | None = None


async def drain(
    segment: Segment, proposals: Sequence[Proposal], *, loop: AgentLoop, invoker: ToolInvoker, draining: Draining
) -> Drained:
    """Run what may run; answers go into the segment's log.

    Raises:
        SegmentAbort: the segment was stopped, an answer stops the run, or this worker drains.
        RunEnded, ClaimInFlight, LeaseLost, ClaimLost: as the invoker raises them.
    """
    for place, proposal in enumerate(proposals):
        segment.stop.check()
        if draining.asked:
            raise segment.stop.record("slice", "slice")
        try:
            result = await invoker.invoke(tool_call(proposal.call, proposal_id=proposal.id), segment.inv)
        except ApprovalRequired as asked:
            later = await _questions(segment, proposals[place + 1 :], invoker)
            return Drained(questions=_once([asked.request, *later]))
        stopped = record_stop(segment.stop, proposal.call.tool, result)
        if stopped is not None:
            raise stopped
        waits = segment.trail.job_waits.pop(proposal.call.model_call_id, None)
        if waits is not None:
            return Drained(job=waits)  # the call is still open, and is made again when the run is led again
        segment.add([loop.tool_message(proposal.call, answer_of(segment.inv, proposal.call, result))])
        segment.answered.append(proposal.id)
        segment.repeats.answered(proposal.call, result, segment.trail.evidence.pop(proposal.call.model_call_id, None))
        segment.repeats.settle()
    return Drained()


async def _questions(segment: Segment, later: Sequence[Proposal], invoker: ToolInvoker) -> list[ApprovalRequest]:
    asked = [
        await invoker.must_ask(tool_call(proposal.call, proposal_id=proposal.id), segment.inv) for proposal in later
    ]
    return [request for request in asked if request is not None]


def _once(questions: Sequence[ApprovalRequest]) -> list[ApprovalRequest]:
    """Two identical calls of a turn are one question."""
    return list({(question.tool, question.contract_hash, question.digest): question for question in questions}.values())
