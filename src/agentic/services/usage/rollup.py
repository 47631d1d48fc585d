"""Sums of usage by day (UTC), which outlive the lines they were made of.

For people and reports alone: they are late by up to a day. Nothing that takes, holds, spends or bounds money reads them (ADR 0031).
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from agentic.contract.values import Value

WINDOW_DAYS = 7
"""How many days back are computed anew each time, for lines that were committed late or a rollup that was away."""


class DaySum(Value):
    """What one thing cost in one day, in one unit. US dollars, exact."""

    day: date
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
    computed_at: datetime


class RollupStore(Protocol):
    """Keeps the sums."""

    async def roll_up(self, *, days: int) -> int:
        """Compute the sums of the last days, today among them; how many changed. Safe at any time, twice at once too."""
        ...

    async def daily(self, organization_id: UUID, last: date | None, days: int) -> Sequence[DaySum]:
        """The sums of an organization for some days until the last one; ``None`` is the database's today."""
        ...


class Rollup:
    """Computes the sums."""

    def __init__(self, store: RollupStore, *, days: int = WINDOW_DAYS) -> None:
        self._store = store
        self._days = days

    async def compute(self) -> int:
        """Compute the sums of the window; how many changed."""
        return await self._store.roll_up(days=self._days)
