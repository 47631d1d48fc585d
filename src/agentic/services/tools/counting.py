"""What a call is counted at, from what its handler reported: pure (M1, M4, ADR 0029)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import assert_never
from uuid import UUID

from agentic.services.tools.context import ReportedUsage
from agentic.services.tools.metering import Hold, Pricing, countable
from agentic.services.tools.records import UsageRecord

CALL = "call"
"""The unit of a line that stands for a call of which nobody knows what it used."""


class MeterFault(StrEnum):
    """A defect of the deployment that keeps money from being counted. Static: none of them differs from run to run."""

    NO_METER = "no meter"
    """The invoker was joined without one."""
    NO_REPORT = "no report"
    """The handler returned and did not say what the call used."""
    NO_PRICE = "no price"
    """What it reported cannot be counted."""
    ABOVE_BOUND = "above its bound"
    """It cost more than the tool declares; recorded as it is."""

    @property
    def remedy(self) -> str:
        """What an operator does about it."""
        match self:
            case MeterFault.NO_METER:
                return "the invoker was made without a meter, open_platform makes one with it"
            case MeterFault.NO_REPORT:
                return "its handler says what each call used with ctx.report_usage"
            case MeterFault.NO_PRICE:
                return "'agentic prices set PROVIDER ITEM UNIT AMOUNT' prices what its handler reports, if that is a number"
            case MeterFault.ABOVE_BOUND:
                return "its cost_bound is the most one call can cost"
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Whose usage it is: what every line of one call has in common."""

    tool: str
    span_id: UUID
    id: Callable[[int], UUID]
    """The id of the line of this number, the same however often it is asked for."""

    @property
    def provider(self) -> str:
        """Whose service it is when the report does not say: the tool's domain."""
        return self.tool.split(".", 1)[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """The lines of one call, and what was wrong with its report, if anything was."""

    lines: tuple[UsageRecord, ...]
    fault: MeterFault | None = None

    @property
    def is_known(self) -> bool:
        """Whether the lines say what was reported; ``False`` when they stand at the bound."""
        return self.fault in (None, MeterFault.ABOVE_BOUND)


def counted(reports: Sequence[ReportedUsage], line: Line, *, hold: Hold, pricing: Pricing) -> Counted:
    """Count what a metered call reported. What cannot be counted is one line at the bound, and a fault."""
    if not reports:
        return Counted(lines=(at_the_bound(line, hold.bound, error="no_report"),), fault=MeterFault.NO_REPORT)
    lines, total, whole = [], Decimal(0), True
    for number, item in enumerate(reports):
        price = pricing(item, hold.prices, item=line.tool, provider=line.provider, at=hold.at)
        if price is None:
            whole = False
            continue
        total += price.cost
        row = None if price.price_row is None else str(price.price_row)
        lines.append(_reported(line, number, item, cost=price.cost, price_row=row))
    if not whole:
        bound = max(hold.bound, total)
        return Counted(lines=(at_the_bound(line, bound, error="no_price"),), fault=MeterFault.NO_PRICE)
    return Counted(lines=tuple(lines), fault=MeterFault.ABOVE_BOUND if total > hold.bound else None)


def reported(reports: Sequence[ReportedUsage], line: Line) -> tuple[UsageRecord, ...]:
    """What a call that is not metered said it used: written as it is, with the money it named, if it named any."""
    return tuple(_as_it_is(line, number, item) for number, item in enumerate(reports))


def at_the_bound(line: Line, bound: Decimal, *, error: str, ok: bool = True) -> UsageRecord:
    """The one line of a call that nobody can count: its declared bound."""
    return UsageRecord(
        id=line.id(0),
        kind="tool",
        provider=line.provider,
        item=line.tool,
        quantity=Decimal(1),
        unit=CALL,
        cost=bound,
        span_id=line.span_id,
        ok=ok,
        error=error,
        estimated=True,
    )


def _as_it_is(line: Line, number: int, item: ReportedUsage) -> UsageRecord:
    if countable(item.quantity) and (item.cost is None or countable(item.cost)):
        return _reported(line, number, item, cost=item.cost, price_row=None)
    nothing = ReportedUsage(quantity=Decimal(0), unit=item.unit, provider=item.provider)
    return _reported(line, number, nothing, cost=None, price_row=None, error="unreadable_report")


def _reported(
    line: Line,
    number: int,
    item: ReportedUsage,
    *,
    cost: Decimal | None,
    price_row: str | None,
    error: str | None = None,
) -> UsageRecord:
    return UsageRecord(
        id=line.id(number),
        kind="tool",
        provider=item.provider or line.provider,
        item=line.tool,
        quantity=item.quantity,
        unit=item.unit,
        cost=cost,
        price_row=price_row,
        span_id=line.span_id,
        ok=error is None,
        error=error,
        estimated=item.estimated,
    )
