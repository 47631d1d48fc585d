"""What the functions call. The runtime gives it; ``bootstrap`` joins them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from agentic.runtime.agent.endings import Advanced
from agentic.services.capacity.declared import RUNS_AT_ONCE
from agentic.services.mcp.administration import Probed
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


class Settling(Protocol):
    """Settles what jobs of providers cost."""

    async def settle(self, organization_id: UUID, job_id: UUID) -> bool:
        """Settle an ended job; ``False`` when there is nothing to settle."""
        ...

    async def give_up(self, organization_id: UUID, job_id: UUID) -> None:
        """Report a job whose cost could not be settled."""
        ...


class Reconciling(Protocol):
    """Looks after jobs that nothing was heard of."""

    async def sweep(self) -> int:
        """Ask, hand over and nudge; how many jobs moved."""
        ...


class Probing(Protocol):
    """Looks at MCP servers that nobody has talked to for a while."""

    async def probe_due(self) -> Probed:
        """Look at those whose time it is; one that fails keeps no other from it."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionPorts:
    """Everything the functions need."""

    leader: Leader
    sweeper: Sweeper
    cleaner: Cleaner
    summing: Summing
    settling: Settling
    reconciling: Reconciling
    probing: Probing
    runs_at_once: int = RUNS_AT_ONCE
    """Active runs of one organization in one lane."""
    of_app: Callable[[object], Sequence[Any]] | None = None
    """Makes the functions of the app's own, of the SDK's client."""
