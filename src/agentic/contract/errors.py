"""Exceptions, ordered by what the caller does next.

AgenticError
├── RetryLater          nothing is wrong that time does not mend: run the same thing again
│   ├── ClaimInFlight       another worker holds a live claim on this very call
│   └── StorageUnavailable  the database did not answer
├── GiveUp              this attempt is over; somebody else owns the work now
│   ├── LeaseLost           another worker took the run
│   └── ClaimLost           another worker took the call's claim
├── Parked              a person or a provider must act first
│   └── ApprovalRequired
├── RunEnded            the run reached a terminal state under a stable code
├── Conflict            the same key with another content, or a second, opposite decision
│   └── ParentRefuses       a run that is over, being cancelled or too deep starts no other
├── NotFound            no such row in this organization (a foreign id looks the same, T1)
├── NotPermitted        the person lacks the role
└── ProgramFault        fix the program, the declaration or the deployment
└── RegistryError
"""

from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

if TYPE_CHECKING:
    from agentic.contract.approvals import ApprovalRequest


class AgenticError(Exception):
    """Root of the package's errors. Messages name the remedy and hold nothing secret."""


class RetryLater(AgenticError):
    """The same thing may be run again."""


class ClaimInFlight(RetryLater):
    """Another worker holds a live claim on this call (J2). ``due_at`` is when its lease ends."""

    def __init__(self, *, tool: str, due_at: datetime) -> None:
        super().__init__(
            f"{tool}: this call is being run by another worker until {due_at.isoformat()}; wait for its answer"
        )
        self.tool = tool
        self.due_at = due_at


class StorageUnavailable(RetryLater):
    """The database could not be reached or dropped the connection."""


class GiveUp(AgenticError):
    """This attempt ends quietly; another owns the work."""


class LeaseLost(GiveUp):
    """The run's fence moved or its lease ran out."""


class ClaimLost(GiveUp):
    """The claim's attempt moved: a later worker owns the call (J5)."""


class Parked(AgenticError):
    """The call waits for something outside the process."""


class ApprovalRequired(Parked):
    """A person must approve this call. A pause, not a failure (D3)."""

    def __init__(self, request: "ApprovalRequest") -> None:
        super().__init__(f"{request.tool} needs an approval before it may run")
        self.request = request


class RunEnded(AgenticError):
    """The run ends now: ``status`` is terminal and ``code`` names why (W4)."""

    def __init__(self, *, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Conflict(AgenticError):
    """The same key was used for something else, or a decision was already made the other way."""


class ParentRefuses(Conflict):
    """The parent starts no run any more; ``code`` says why, and nothing of the child exists."""

    def __init__(self, *, run_id: UUID | None, code: Literal["parent_cancelled", "parent_over", "too_deep"]) -> None:
        why = {
            "parent_cancelled": "is being cancelled",
            "parent_over": "is over",
            "too_deep": "has as many runs above it as a run may have",
        }
        super().__init__(f"run {run_id} {why[code]}, so it starts no other run")
        self.run_id = run_id
        self.code = code


class NotFound(AgenticError):
    """There is no such row in this organization."""


class NotPermitted(AgenticError):
    """The person is not allowed to do this."""


class ProgramFault(AgenticError):
    """A defect of the program, a declaration or the deployment."""


class RegistryError(ProgramFault):
    """One or more tool declarations are broken; every fault is named at once."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("the tools cannot be registered:\n" + "\n".join(f"  - {fault}" for fault in faults))
        self.faults = tuple(faults)
