"""What a handler sees of its call: no store, no registry, no policy, no other tool."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

from agentic.contract.clock import Clock
from agentic.contract.principal import Principal


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedUsage:
    """What one call cost, as the handler learned it. The invoker writes the row (DECISIONS 17)."""

    quantity: Decimal
    unit: str
    """What is counted: ``email``, ``credit``, ``request``."""
    cost: Decimal | None = None
    """Money, when the vendor reported it."""
    provider: str | None = None


@dataclass(kw_only=True, slots=True)
class CallContext:
    """Handed to ``execute``. Everything a handler may know about the call it serves.

    Attributes:
        idempotency_key: the vendor key of this logical call; the same on every attempt within an epoch (J7). ``None`` for a read.
        deadline: monotonic second by which the handler must have answered.
        before_first_byte: await it just before the effect can leave the process; the governed HTTP client does.
        cancelled: set when the run is being cancelled; a handler may stop early *before* its effect.
    """

    principal: Principal
    run_id: UUID
    tool: str
    idempotency_key: str | None
    attempt: int
    deadline: float
    clock: Clock
    before_first_byte: Callable[[], Awaitable[None]]
    secrets: tuple[str, ...] = ()
    """Credential values of this call; the boundary removes them from whatever comes back (B2)."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    usage: list[ReportedUsage] = field(default_factory=list)

    @property
    def organization_id(self) -> UUID:
        return self.principal.organization_id

    @property
    def remaining_s(self) -> float:
        """Seconds left until the deadline, never negative."""
        return max(0.0, self.deadline - self.clock.monotonic())

    def report_usage(
        self, quantity: Decimal | int, unit: str, *, cost: Decimal | None = None, provider: str | None = None
    ) -> None:
        """Say what this call cost; billed once with the call's answer, however often it was attempted (M1)."""
        self.usage.append(ReportedUsage(quantity=Decimal(quantity), unit=unit, cost=cost, provider=provider))
