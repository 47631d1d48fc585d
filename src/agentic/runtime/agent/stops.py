"""What the stop of a call's answer means for its run: one function for reads inside the loop and for the drain (D4).

The code of an answer cannot say it: a remote tool may answer ``budget_exhausted`` about a budget of its vendor.
"""

from typing import assert_never

from agentic.contract.errors import RunEnded
from agentic.contract.results import ErrorCode, ToolResult
from agentic.runtime.agent.aborts import SegmentAbort, SegmentStop
from agentic.runtime.agent.money import EXHAUSTED


def record_stop(stop: SegmentStop, tool: str, result: ToolResult) -> SegmentAbort | None:
    """Remember the stop that a call's answer carries, if any; the caller raises what comes back.

    ``budget_exhausted`` ends the run as a success with that reason: what was done stays done, and the calls beside this one
    stay undecided. ``fault`` ends it as failed under the answer's own code, for no model can mend a deployment.
    """
    match result.stop:
        case None:
            return None
        case "budget_exhausted":
            return stop.record("ceiling", EXHAUSTED, _ended("succeeded", EXHAUSTED, tool, result))
        case "fault":
            code = str(ErrorCode.INTERNAL_ERROR if result.error is None else result.error.code)
            return stop.record("failed", code, _ended("failed", code, tool, result))
        case _ as never:
            assert_never(never)


def _ended(status: str, code: str, tool: str, result: ToolResult) -> RunEnded:
    said = "its answer cannot be used" if result.error is None else result.error.message
    return RunEnded(status=status, code=code, message=f"{tool}: {said}")
