"""Which price counts, and that amounts are exact."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.context import ReportedUsage
from agentic.services.usage.pricing import Price, countable, priced

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
OURS = UUID(int=1)


def price(
    unit_price: str,
    *,
    organization_id: UUID | None = None,
    item: str = "*",
    unit: str = "credit",
    provider: str = "exa",
    days_old: float = 1,
) -> Price:
    return Price(
        id=uuid4(),
        organization_id=organization_id,
        provider=provider,
        item=item,
        unit=unit,
        unit_price=Decimal(unit_price),
        valid_from=NOW - timedelta(days=days_old),
    )


def report(
    quantity: str = "3", *, cost: str | None = None, unit: str = "credit", provider: str | None = None
) -> ReportedUsage:
    return ReportedUsage(
        quantity=Decimal(quantity), unit=unit, cost=None if cost is None else Decimal(cost), provider=provider
    )


def cost_of(reported: ReportedUsage, *prices: Price) -> Decimal | None:
    found = priced(reported, prices, item="exa.search", provider="exa", at=NOW)
    return None if found is None else found.cost


def test_a_price_is_multiplied_by_what_was_used_and_its_row_is_named() -> None:
    row = price("0.005")
    found = priced(report("3"), [row], item="exa.search", provider="exa", at=NOW)
    assert found is not None
    assert (found.cost, found.price_row) == (Decimal("0.015"), row.id)


def test_money_that_the_vendor_named_counts_as_it_is_and_names_no_row() -> None:
    found = priced(report(cost="0.07"), [price("0.005")], item="exa.search", provider="exa", at=NOW)
    assert found is not None
    assert (found.cost, found.price_row) == (Decimal("0.07"), None)


@pytest.mark.parametrize(
    ("wins", "loses"),
    [
        (price("1", organization_id=OURS), price("2", item="exa.search")),
        (price("1", organization_id=OURS, days_old=9), price("2", days_old=1)),
        (price("1", item="exa.search", days_old=9), price("2", days_old=1)),
        (price("1", days_old=1), price("2", days_old=2)),
        (price("1", days_old=0), price("2", days_old=2)),
    ],
    ids=["ours over exact", "ours over newer", "exact over newer", "newer", "valid from now on"],
)
def test_the_most_specific_price_wins_then_the_latest(wins: Price, loses: Price) -> None:
    assert cost_of(report("1"), wins, loses) == cost_of(report("1"), loses, wins) == Decimal(1)


@pytest.mark.parametrize(
    "passed_over",
    [
        price("2", unit="request"),
        price("2", provider="hunter"),
        price("2", item="exa.find_similar"),
        price("2", days_old=-1),
    ],
    ids=["another unit", "another provider", "another item", "not valid yet"],
)
def test_a_price_of_something_else_prices_nothing(passed_over: Price) -> None:
    assert cost_of(report(), passed_over) is None
    assert cost_of(report("1"), passed_over, price("1")) == Decimal(1)


def test_the_provider_that_the_report_names_goes_before_the_tools_own() -> None:
    assert cost_of(report("1", provider="hunter"), price("1"), price("2", provider="hunter")) == Decimal(2)


def test_nothing_used_costs_nothing() -> None:
    assert cost_of(report("0"), price("0.005")) == 0


@pytest.mark.parametrize("bad", ["NaN", "sNaN", "Infinity", "-1", "1e31", "1e-31"])
def test_what_is_no_amount_cannot_be_counted(bad: str) -> None:
    assert cost_of(report(bad), price("0.005")) is None
    assert cost_of(report("1", cost=bad), price("0.005")) is None
    assert cost_of(report(bad, cost="1"), price("0.005")) is None


amounts = st.decimals(min_value=0, max_value=10**15, allow_nan=False, allow_infinity=False, places=None).filter(
    countable
)


@given(quantity=amounts, unit_price=amounts)
def test_no_digit_of_a_cost_is_lost(quantity: Decimal, unit_price: Decimal) -> None:
    found = cost_of(report(str(quantity)), price(str(unit_price)))
    assert found is not None
    assert Fraction(found) == Fraction(quantity) * Fraction(unit_price)
