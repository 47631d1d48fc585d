"""Usage, prices and limits as people read them. Pure; takes the JSON of ``api.usage_views``."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentic.cli.listings import field_table
from agentic.cli.options import MAX_LIMIT
from agentic.cli.safe_text import safe_line
from agentic.cli.times import moment

Json = Mapping[str, Any]


def days_sheet(sums: Sequence[Any]) -> RenderableType:
    """Sums by day."""
    rows = [
        (
            one["day"],
            one["kind"],
            one["provider"],
            one["item"],
            f"{one['quantity']} {one['unit']}",
            money(one["cost"]),
            str(one["unpriced"] or ""),
        )
        for one in sums
    ]
    return _table(("day", "kind", "provider", "item", "quantity", "cost", "without a price"), rows, right=("cost",))


def run_sheet(usage: Json, agentic: str = "agentic") -> RenderableType:
    """What a run used: line by line, in sum, and what is held."""
    sums = {
        "run": usage["run_id"],
        "part of": None if usage["root_run_id"] == usage["run_id"] else usage["root_run_id"],
        "spent": money(usage["spent"]),
        "held": money(usage["held"]) if usage["reservations"] else None,
        "ceiling": "none" if usage["ceiling"] is None else money(usage["ceiling"]),
    }
    parts: list[RenderableType] = [field_table(sums)]
    if usage["lines"]:
        rows = [
            (
                moment(line["at"]),
                line["kind"],
                line["provider"],
                line["item"],
                f"{line['quantity']} {line['unit']}",
                cost_of(line),
                line["error"] or "",
                line["span_id"] or "",
            )
            for line in usage["lines"]
        ]
        names = ("when", "kind", "provider", "item", "quantity", "cost", "error", "call")
        parts += [_title("lines"), _table(names, rows, right=("cost",))]
        if usage["left_out"]:
            parts.append(
                Text(
                    f"and {usage['left_out']} more; --limit shows up to {MAX_LIMIT}, the sums have all", style="yellow"
                )
            )
        parts += [_title("totals"), _totals(usage["totals"])]
    if usage["reservations"]:
        kept = [
            (
                moment(held["created_at"]),
                held["owner"],
                held["tool"] or "",
                money(held["amount"]),
                moment(held["lease_expires_at"]),
                held["span_id"] or "",
            )
            for held in usage["reservations"]
        ]
        parts += [_title("held"), _table(("since", "for", "tool", "amount", "until", "call"), kept, right=("amount",))]
    return Group(*parts, *_unpriced(usage, agentic))


def day_sheet(usage: Json, agentic: str = "agentic") -> RenderableType:
    """What an organization used in a day."""
    parts: list[RenderableType] = [limit_sheet(usage)]
    if usage["totals"]:
        parts += [_title("totals"), _totals(usage["totals"])]
    else:
        parts.append(Text("nothing was used on this day"))
    return Group(*parts, *_unpriced(usage, agentic))


def limit_sheet(usage: Json) -> RenderableType:
    """The limit of a day, and what is left of it."""
    return field_table(
        {
            "organization": usage["organization_id"],
            "day": f"{usage['day']} (UTC)",
            "spent": money(usage["spent"]),
            "held": money(usage["held"]),
            "limit": "none" if usage["limit"] is None else money(usage["limit"]),
            "left": None if usage["left"] is None else money(usage["left"]),
        }
    )


def price_table(prices: Sequence[Any]) -> RenderableType:
    """Prices."""
    rows = [
        (
            price["provider"],
            price["item"],
            price["unit"],
            money(price["unit_price"]),
            "everybody" if price["organization_id"] is None else "this organization",
            moment(price["valid_from"]),
        )
        for price in prices
    ]
    return _table(("provider", "item", "unit", "price", "for", "since"), rows, right=("price",))


def money(amount: str) -> str:
    """An amount, never rounded."""
    return f"{amount} USD"


def cost_of(line: Json) -> str:
    """The cost of one line, and whether it is a guess or missing."""
    if line["cost"] is None:
        return "unpriced"
    return f"{money(line['cost'])}{' (estimated)' if line['estimated'] else ''}"


def _totals(totals: Sequence[Json]) -> Table:
    rows = [
        (
            total["kind"],
            total["provider"],
            total["item"],
            f"{total['quantity']} {total['unit']}",
            str(total["lines"]),
            money(total["cost"]),
            ", ".join(f"{total[name]} {name}" for name in ("unpriced", "estimated") if total[name]),
        )
        for total in totals
    ]
    names = ("kind", "provider", "item", "quantity", "lines", "cost", "")
    return _table(names, rows, right=("lines", "cost"))


def _unpriced(usage: Json, agentic: str) -> list[RenderableType]:
    if not usage["unpriced"]:
        return []
    lines = "1 line has" if usage["unpriced"] == 1 else f"{usage['unpriced']} lines have"
    said = f"{lines} no price, counted as nothing here; '{agentic} prices set' sets prices from now on"
    return [Text(said, style="yellow")]


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold", justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*(Text(safe_line(cell)) for cell in row))
    return table
