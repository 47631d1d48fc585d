"""What was used and what it cost, as people and the API read it. Amounts are exact decimals in US dollars (M3)."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from agentic.contract.values import Value


class UsageLine(Value):
    """One billable operation."""

    id: UUID
    at: datetime
    run_id: UUID
    span_id: UUID | None
    """The call or model request in the run's tree."""
    kind: str
    """``model``, ``tool`` or ``job``."""
    provider: str
    item: str
    quantity: Decimal
    unit: str
    cost: Decimal | None
    """``None``: nobody named a cost and no price covered it."""
    price_row: str | None
    """The price it was counted by, several joined by commas; ``None`` when the provider named the money."""
    estimated: bool
    """Nobody said what it cost: the tool worked it out, or it is counted at the declared bound."""
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    ok: bool
    error: str | None


class UsageTotal(Value):
    """The lines of one thing in one unit."""

    kind: str
    provider: str
    item: str
    unit: str
    lines: int
    quantity: Decimal
    cost: Decimal
    """Of the lines that have one."""
    unpriced: int
    """How many lines have none."""
    estimated: int


class Held(Value):
    """Money held for one call that has not ended, or whose outcome nobody knows."""

    id: UUID
    run_id: UUID
    owner: str
    """``claim``, ``read``, ``job`` or ``child``."""
    tool: str | None
    span_id: UUID | None
    amount: Decimal
    created_at: datetime
    lease_expires_at: datetime | None


class RunUsage(Value):
    """What a run and its children used."""

    run_id: UUID
    root_run_id: UUID
    ceiling: Decimal | None
    """What the tree may cost; ``None`` for no bound."""
    spent: Decimal
    held: Decimal
    unpriced: int
    lines: Sequence[UsageLine]
    """In the order they were written; the first ones when there are more than were asked for."""
    left_out: int
    """How many lines there are beyond those."""
    totals: Sequence[UsageTotal]
    reservations: Sequence[Held]


class DayUsage(Value):
    """What an organization used in one day (UTC)."""

    organization_id: UUID
    day: date
    limit: Decimal | None
    """What it may spend in a day, as it stands now; ``None`` for no bound."""
    spent: Decimal
    held: Decimal
    """Now, for calls of any day that have not ended; zero for a day that is over."""
    left: Decimal | None
    """Of the limit, never negative."""
    unpriced: int
    totals: Sequence[UsageTotal]
