"""Listings for people: one row each, identifiers whole so that they can be copied. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from agentic.cli.safe_text import safe_line
from agentic.cli.times import moment

Rows = Sequence[Any]
"""JSON objects as ``api.views`` makes them."""


def run_table(runs: Rows) -> Table:
    """Runs."""
    table = _table("run", "agent", "state", "started", "note")
    for run in runs:
        note = run["error_code"] or run["partial_reason"] or ("outcome unknown" if run["has_uncertain"] else "")
        _add(table, run["id"], run["definition_name"], run["state"], moment(run["created_at"]), note)
    return table


def approval_table(approvals: Rows) -> Table:
    """Approvals."""
    table = _table("approval", "tool", "status", "expires", "arguments")
    for approval in approvals:
        cells = (approval["tool"], approval["status"], moment(approval["expires_at"]), approval["arguments_text"])
        _add(table, approval["id"], *cells)
    return table


def uncertain_table(calls: Rows) -> Table:
    """Calls whose outcome is unknown."""
    table = _table("reference", "tool", "since", "why", "arguments")
    for call in calls:
        cells = (call["tool"], moment(call["uncertain_at"]), call["uncertain_reason"], call["arguments_text"])
        _add(table, call["ref"], *cells)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, no_wrap=True, overflow="fold")
    for name in others:
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    return table


def _add(table: Table, *cells: Any) -> None:
    table.add_row(*(Text(safe_line(str(cell or ""))) for cell in cells))


def field_table(fields: Mapping[str, Any]) -> Table:
    """Named fields of one thing; those without a value are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value not in (None, ""):
            table.add_row(name, value if isinstance(value, Text) else Text(safe_line(str(value))))
    return table
