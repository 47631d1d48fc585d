"""How a node tells its function that there is no answer to go on with."""

from typing import Final

import inngest

from agentic.contract.results import ErrorCode, ToolResult

_RETRY: Final = "NodeRetry"
"""Name under which a step's last failed attempt is recorded; what is recorded is read for ever."""


class NodeFailed(inngest.NonRetriableError):
    """The node has failed for good; its answer is stored, so calling the function again would only find it again.

    Attributes:
        node: id of the node, or of the wait.
        reason: stable: an error code of a call, or ``cancelled``, ``deadline``, ``crash_loop``, ``node_reused``, ``program_fault``; of
            a workflow that has ended before, its code, or ``over``.
        result: the call's answer, where there was one.
    """

    def __init__(self, node: str, reason: str, message: str, *, result: ToolResult | None = None) -> None:
        super().__init__(f"{node}: {reason}: {message}")
        self.node = node
        self.reason = str(reason)
        self.result = result


class WorkflowPartial(Exception):
    """The workflow has used what it may: the call was not made, and no other will be. The function ends with what it has.

    Attributes:
        reason: ``budget_exhausted``, ``budget_exhausted_day`` or ``limit_reached``.
    """

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}: the workflow has used what it may")
        self.node = node
        self.reason = reason


class NodeRetry(Exception):
    """Raised inside a step: the service behind the tool was busy, and the function's own retries say how often it is tried again."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(str(code))


def retried(error: inngest.StepError) -> ErrorCode | None:
    """The code under which a step was tried as often as its function allows; ``None`` for a step that failed otherwise."""
    return ErrorCode(error.message) if error.name == _RETRY else None
