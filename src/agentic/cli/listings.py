"""Listings for people: one row each, identifiers never shortened so that they can be copied. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from agentic.cli.safe_text import safe_line
from agentic.cli.times import minute

Rows = Sequence[Any]
"""JSON objects as ``api.views`` makes them."""


def run_table(runs: Rows) -> Table:
    """Runs."""
    return _table(
        ("run", "agent", "state", "started", "note"),
        [
            (
                run["id"],
                run["definition_name"],
                run["state"],
                minute(run["created_at"]),
                run["error_code"] or run["partial_reason"] or ("outcome unknown" if run["has_uncertain"] else ""),
            )
            for run in runs
        ],
    )


def approval_table(approvals: Rows) -> Table:
    """Approvals."""
    return _table(
        ("approval", "tool", "status", "expires", "arguments"),
        [
            (item["id"], item["tool"], item["status"], minute(item["expires_at"]), item["arguments_text"])
            for item in approvals
        ],
    )


def uncertain_table(calls: Rows) -> Table:
    """Calls whose outcome is unknown."""
    return _table(
        ("reference", "tool", "since", "why", "arguments"),
        [
            (call["ref"], call["tool"], minute(call["uncertain_at"]), call["uncertain_reason"], call["arguments_text"])
            for call in calls
        ],
    )


def account_table(accounts: Rows) -> Table:
    """Vendor accounts: what each lane can ask of them at once, and what they allow."""
    rows = []
    for account in accounts:
        for lane in account["lanes"]:
            product = f"{lane['runs']} x {lane['calls']} = {lane['product']}"
            rows.append((account["provider"], lane["lane"], product, "", lane["widest"]))
        verdict = (
            "fits" if account["fits"] else "TOO MANY: lower runs_at_once or the width, or raise the account's limit"
        )
        rows.append((account["provider"], "all", str(account["calls"]), str(account["limit"]), verdict))
    return _table(("account", "lane", "calls at once", "limit", "widest run"), rows)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """The last column takes what room is left; the others are never cut."""
    table = Table(box=None, pad_edge=False, expand=True)
    for name in names[:-1]:
        table.add_column(name, overflow="fold")
    table.add_column(names[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        table.add_row(*(Text(safe_line(str(cell or ""))) for cell in row))
    return table


def field_table(fields: Mapping[str, Any]) -> Table:
    """Named fields of one thing; those without a value are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value not in (None, ""):
            table.add_row(name, value if isinstance(value, Text) else Text(safe_line(str(value))))
    return table
