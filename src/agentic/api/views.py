"""Rows as JSON, the same for the API, ``agentic … --json`` and the demo. Pure; imports no web framework.

Ids and times are strings, times in ISO 8601 with their zone; money is a decimal string, so that no reader rounds it (M3).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from agentic.contract.json_types import JsonArray, JsonObject, JsonValue
from agentic.services.approvals.models import Approval
from agentic.services.journal.models import UncertainCall
from agentic.services.runs.events import RunEvent
from agentic.services.runs.models import RunTree

_COUNTS = ("input_tokens", "output_tokens", "rows", "unpriced")


def tree_view(tree: RunTree) -> JsonObject:
    """A run with everything it can say about itself."""
    return {
        "run": _row(tree.run),
        "spans": _rows(tree.spans),
        "decisions": _rows(tree.decisions),
        "approvals": _rows(tree.approvals),
        "effects": _rows(tree.effects),
        "uncertain": _rows(tree.uncertain),
        "waits": _rows(tree.waits),
        "artifacts": _rows(tree.artifacts),
        "family": _rows(tree.family),
        "cost": {name: int(value) if name in _COUNTS else plain(value) for name, value in tree.cost.items()},
    }


def run_view(row: Mapping[str, Any]) -> JsonObject:
    """A run's own row."""
    return _row(row)


def run_list_view(rows: Iterable[Mapping[str, Any]]) -> JsonArray:
    """Runs as a listing shows them."""
    return _rows(rows)


def event_view(event: RunEvent) -> JsonObject:
    """One event of a run."""
    return {"seq": event.seq, "kind": event.kind, "at": plain(event.at), "data": plain(event.data)}


def approval_view(approval: Approval) -> JsonObject:
    """One approval."""
    return _row(approval.model_dump())


def uncertain_view(call: UncertainCall) -> JsonObject:
    """One call whose outcome nobody knows."""
    return _row(call.model_dump())


def plain(value: Any) -> JsonValue:
    """A column's value as JSON.

    Raises:
        TypeError: a type that no column of ours has.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case UUID():
            return str(value)
        case Decimal():
            return format(value, "f")  # without an exponent, to the last digit
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form here")


def _row(row: Mapping[str, Any]) -> JsonObject:
    return {key: plain(value) for key, value in row.items()}


def _rows(rows: Iterable[Mapping[str, Any]]) -> JsonArray:
    return [_row(row) for row in rows]
