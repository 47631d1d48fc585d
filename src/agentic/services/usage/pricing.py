"""Which price counts for a report of usage, and what it comes to: pure, and exact to the last digit (M3)."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Context, Inexact
from uuid import UUID

from agentic.services.tools.context import ReportedUsage
from agentic.services.tools.metering import Price, Priced, countable

__all__ = ["ANY_ITEM", "Price", "Priced", "countable", "price_of", "priced"]

ANY_ITEM = "*"
"""A price's item that stands for everything of its provider."""
_EXACT = Context(prec=150, traps=[Inexact])
"""A product of two countable amounts has at most 120 digits."""


def priced(
    reported: ReportedUsage, prices: Sequence[Price], *, item: str, provider: str, at: datetime
) -> Priced | None:
    """The cost of one report, or ``None`` when the meter cannot count it.

    Money that the handler named counts as it is; otherwise the quantity times the price that counts.

    Args:
        reported: what the handler learned of one operation.
        prices: rows that may apply, in any order; others are passed over.
        item: what was used: a tool's platform name.
        provider: whose service it is when the report does not say.
        at: the moment whose prices count.
    """
    if not countable(reported.quantity):
        return None
    if reported.cost is not None:
        return Priced(cost=reported.cost, price_row=None) if countable(reported.cost) else None
    row = price_of(prices, provider=reported.provider or provider, item=item, unit=reported.unit, at=at)
    if row is None:
        return None
    return Priced(cost=_EXACT.multiply(reported.quantity, row.unit_price), price_row=row.id)


def price_of(
    prices: Sequence[Price],
    *,
    provider: str,
    item: str,
    unit: str,
    at: datetime,
    organization_id: UUID | None = None,
) -> Price | None:
    """The row that counts: an organization's own before everybody's, the exact item before any, then the latest.

    Args:
        organization_id: leave out the rows of any other organization; ``None`` trusts that ``prices`` holds none.
    """
    rows = [
        row
        for row in prices
        if row.provider == provider
        and row.unit == unit
        and row.item in (item, ANY_ITEM)
        and row.valid_from <= at
        and countable(row.unit_price)
        and (organization_id is None or row.organization_id in (None, organization_id))
    ]
    return max(
        rows,
        key=lambda row: (row.organization_id is not None, row.item != ANY_ITEM, row.valid_from, row.id),
        default=None,
    )
