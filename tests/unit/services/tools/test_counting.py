"""What a call is counted at: what was reported, or one line at the bound."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.context import ReportedUsage
from agentic.services.tools.counting import Line, MeterFault, counted, reported
from agentic.services.tools.metering import Hold, Price
from agentic.services.usage.pricing import priced

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LINE = Line(tool="exa.search", span_id=UUID(int=7), id=lambda number: UUID(int=100 + number))


def hold(bound: str = "3.00", *, unit_price: str | None = "0.005") -> Hold:
    prices = []
    if unit_price is not None:
        row = Price(
            id=uuid4(), organization_id=None, provider="exa", item="*", unit="credit",
            unit_price=Decimal(unit_price), valid_from=NOW,
        )  # fmt: skip
        prices.append(row)
    return Hold(bound=Decimal(bound), prices=prices, at=NOW)


def report(quantity: str, *, unit: str = "credit", cost: str | None = None) -> ReportedUsage:
    return ReportedUsage(quantity=Decimal(quantity), unit=unit, cost=None if cost is None else Decimal(cost))


def costs(reports: Sequence[ReportedUsage], held: Hold) -> list[Decimal | None]:
    return [line.cost for line in counted(reports, LINE, hold=held, pricing=priced).lines]


def test_each_report_is_a_line_under_an_id_of_its_own() -> None:
    count = counted([report("2"), report("1", cost="0.50")], LINE, hold=hold(), pricing=priced)
    assert count.fault is None
    assert [(line.id.int, line.cost) for line in count.lines] == [(100, Decimal("0.010")), (101, Decimal("0.50"))]
    assert {(line.provider, line.item, line.span_id, line.estimated) for line in count.lines} == {
        ("exa", "exa.search", UUID(int=7), False)
    }


def test_a_call_that_used_nothing_costs_nothing_and_is_a_line_all_the_same() -> None:
    assert costs([report("0")], hold()) == [Decimal("0.000")]


@pytest.mark.parametrize(
    ("reports", "held", "fault"),
    [
        ([], hold(), MeterFault.NO_REPORT),
        ([report("1")], hold(unit_price=None), MeterFault.NO_PRICE),
        ([report("1"), report("1", unit="page")], hold(), MeterFault.NO_PRICE),
        ([report("sNaN")], hold(), MeterFault.NO_PRICE),
    ],
    ids=["nothing reported", "no price at all", "one of two without a price", "no number"],
)
def test_what_cannot_be_counted_is_one_estimated_line_at_the_bound(
    reports: list[ReportedUsage], held: Hold, fault: MeterFault
) -> None:
    count = counted(reports, LINE, hold=held, pricing=priced)
    assert (count.fault, count.is_known) == (fault, False)
    [line] = count.lines
    assert (line.cost, line.estimated, line.quantity, line.unit) == (Decimal("3.00"), True, Decimal(1), "call")


def test_a_line_at_the_bound_is_never_less_than_what_could_be_counted() -> None:
    assert costs([report("1", cost="5"), report("1", unit="page")], hold()) == [Decimal(5)]


def test_more_than_the_bound_is_written_as_it_is() -> None:
    count = counted([report("1", cost="2"), report("1", cost="1.40")], LINE, hold=hold(), pricing=priced)
    assert (count.fault, count.is_known) == (MeterFault.ABOVE_BOUND, True)
    assert [line.cost for line in count.lines] == [Decimal(2), Decimal("1.40")]


@given(cents=st.lists(st.integers(0, 1000), max_size=20))
def test_the_lines_of_a_call_come_to_what_it_reported_or_to_its_bound(cents: list[int]) -> None:
    each = [Decimal(n) / 100 for n in cents]
    found = costs([report("1", cost=str(cost)) for cost in each], hold())
    assert sum(cost or Decimal(0) for cost in found) == (sum(each) if each else Decimal("3.00"))


def test_a_call_that_is_not_metered_is_written_as_it_says_and_never_invented() -> None:
    lines = reported([report("2"), report("1", cost="0.50"), report("-1"), report("1", cost="NaN")], LINE)
    assert [(line.quantity, line.cost, line.error) for line in lines] == [
        (Decimal(2), None, None),
        (Decimal(1), Decimal("0.50"), None),
        (Decimal(0), None, "unreadable_report"),
        (Decimal(0), None, "unreadable_report"),
    ]
