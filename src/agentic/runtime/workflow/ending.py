"""What a node's call came to, and what that makes of the node: pure."""

from dataclasses import dataclass
from typing import Final, assert_never

from agentic.contract.errors import RunEnded
from agentic.contract.results import ErrorCode, ToolResult
from agentic.contract.trust import Trust
from agentic.runtime.workflow.phases import Done, Failed, Partial, done
from agentic.services.runs.models import LedRun, RunEnd
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.outcomes import mends_by_waiting

STOPS: Final = frozenset({ErrorCode.INTERNAL_ERROR})
"""Codes of the platform's own faults: they stop the workflow, whatever its function would have liked to go on with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeEnd:
    """A node that is over: what its function gets, now and at every replay, and what its row says."""

    phase: Done | Failed | Partial
    run: RunEnd
    trust: Trust = Trust.PLATFORM
    """Of the answer's text; lowers what the workflow's later calls are decided under."""


def failed(code: str, message: str) -> NodeEnd:
    """A node that ends without an answer."""
    run = RunEnd(state="cancelled") if code == "cancelled" else RunEnd(state="failed", error_code=code)
    return NodeEnd(phase=Failed(code=code, message=message), run=run)


def partial(reason: str) -> NodeEnd:
    """A call that the workflow may not make any more."""
    return NodeEnd(phase=Partial(reason=reason), run=RunEnd(state="failed", error_code=reason, partial_reason=reason))


def over(led: LedRun, *, out_of_calls: bool, max_attempts: int) -> NodeEnd | None:
    """Why a node that was just taken must make no call, its money aside."""
    if led.cancelled:
        return failed("cancelled", "the workflow is being cancelled")
    if led.overdue:
        return failed("deadline", "the workflow's time is over")
    if led.attempts_without_progress > max_attempts:
        return failed("crash_loop", f"the node was begun {max_attempts} times and never came to an end")
    return partial("limit_reached") if out_of_calls else None


def ended_by(ended: RunEnded) -> NodeEnd:
    """What the end of a run, as the invoker or the money says it, makes of a node."""
    match ended.status:
        case "succeeded":
            return partial(ended.code)
        case "cancelled":
            return failed("cancelled", str(ended))
        case _:
            return failed(ended.code, str(ended))


def ended_with(result: ToolResult, spec: ToolSpec | None) -> NodeEnd | ErrorCode:
    """What an answer makes of a node; the code alone when the same call may be made again later."""
    match result.stop:
        case "budget_exhausted":
            return partial(result.meta.partial_reason or "budget_exhausted")
        case "fault":
            return _stopped(result)
        case None:
            pass
        case _ as never:
            assert_never(never)
    if result.error is None:
        return NodeEnd(phase=done(result), run=RunEnd(state="succeeded"), trust=trust_of(result, spec))
    if result.error.code in STOPS:
        return _stopped(result)
    return result.error.code if mends_by_waiting(result.error.code) else refused(result, spec)


def refused(result: ToolResult, spec: ToolSpec | None) -> NodeEnd:
    """A node whose call did not succeed and is not tried again."""
    assert result.error is not None
    run = RunEnd(state="failed", error_code=str(result.error.code))
    return NodeEnd(phase=done(result), run=run, trust=trust_of(result, spec))


def trust_of(result: ToolResult, spec: ToolSpec | None) -> Trust:
    """How far the text of an answer may be believed (ADR 0012)."""
    trust = spec.output_trust if spec is not None and result.ok else Trust.INTERNAL
    said = result.error.said if result.error is not None else None
    if result.meta.untrusted or (said is not None and said.by == "remote"):
        trust = Trust.EXTERNAL
    if result.meta.trust is not None and (result.ok or (said is not None and said.by == "domain")):
        trust = trust.lowered_by(result.meta.trust)
    return trust


def _stopped(result: ToolResult) -> NodeEnd:
    if result.error is None:
        return failed(str(ErrorCode.INTERNAL_ERROR), "the call's answer cannot be used")
    return failed(str(result.error.code), result.error.message)
