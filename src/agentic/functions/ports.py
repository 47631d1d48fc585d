"""What the functions call. The runtime gives it; ``bootstrap`` joins them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from agentic.runtime.agent.advance import Advanced
from agentic.services.capacity.declared import RUNS_AT_ONCE
from agentic.services.retention.models import Removed


class Leader(Protocol):
    """Leads a run for one segment."""

    async def advance(self, organization_id: UUID, run_id: UUID) -> Advanced:
        """Lead the run, if it is due and nobody else leads it."""
        ...


class Sweeper(Protocol):
    """Repairs what lost events and dead workers left."""

    async def outbox(self) -> int:
        """Send again what is still pending."""
        ...

    async def runs(self) -> int:
        """Expire approvals, settle stale claims, nudge due runs."""
        ...


class Cleaner(Protocol):
    """Removes what has been kept long enough."""

    async def sweep(self) -> Removed:
        """Remove what is over now."""
        ...


class Summing(Protocol):
    """Sums the usage of the last days."""

    async def compute(self) -> int:
        """Compute the sums; how many changed."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionPorts:
    """Everything the functions need."""

    leader: Leader
    sweeper: Sweeper
    cleaner: Cleaner
    summing: Summing
    runs_at_once: int = RUNS_AT_ONCE
    """Active runs of one organization in one lane."""
    of_app: Callable[[object], Sequence[Any]] | None = None
    """Makes the functions of the app's own, of the SDK's client."""
