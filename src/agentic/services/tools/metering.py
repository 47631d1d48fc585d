"""What the invoker knows of money: prices, what a report costs by them, and the port that tells it (ADR 0029).

Amounts are exact decimals in US dollars. Which price counts is decided behind the port, in ``services.usage``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from agentic.services.tools.context import ReportedUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What one unit of a provider's service costs, from a moment on."""

    id: UUID
    organization_id: UUID | None
    """``None``: for every organization of the database."""
    provider: str
    item: str
    """A tool's platform name or a model's id; ``*`` is any of the provider."""
    unit: str
    unit_price: Decimal
    valid_from: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Priced:
    """What a report costs, and by which row; no row when the vendor named the money itself."""

    cost: Decimal
    price_row: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """Money held for one call until it ends, and what its report can be counted by."""

    bound: Decimal
    """The most the call can cost, as its tool declares it."""
    prices: Sequence[Price]
    """Rows that may apply; which one does is decided with the report."""
    at: datetime
    """When it was held, by the database's clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OverBudget:
    """The run's tree has no room for the bound of a call; nothing was held and nothing claimed (M2)."""


class Pricing(Protocol):
    """Tells what a report costs."""

    def __call__(
        self, reported: ReportedUsage, prices: Sequence[Price], *, item: str, provider: str, at: datetime
    ) -> Priced | None:
        """The cost of one report, or ``None`` when it cannot be counted: no price fits, or its numbers are none.

        Args:
            prices: rows that may apply.
            item: the tool's platform name.
            provider: whose service it is when the report does not say.
            at: the moment whose prices count, by the database's clock.
        """
        ...


_MAX_DIGITS = 30


def countable(amount: Decimal) -> bool:
    """Whether an amount can stand in the books: finite, not negative, at most 30 digits before and after the point."""
    if not amount.is_finite() or amount < 0:
        return False
    _, digits, exponent = amount.as_tuple()
    return isinstance(exponent, int) and exponent >= -_MAX_DIGITS and len(digits) + exponent <= _MAX_DIGITS
