"""Event objects as functions are given them, and those with which the engine reports how a run ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from agentic.local.engine.ids import new_ulid
from agentic.local.engine.moments import unix_ms
from agentic.local.engine.store import Transaction

Ending = Literal["completed", "failed", "cancelled"]

FINISHED = "inngest/function.finished"
FAILED = "inngest/function.failed"
CANCELLED = "inngest/function.cancelled"


def make_event(
    transaction: Transaction,
    *,
    name: str,
    data: dict[str, Any],
    event_id: str | None = None,
    ts: int | None = None,
    v: Any = None,
) -> dict[str, Any]:
    """An event object with every field a function is given."""
    event = {
        "data": data,
        "id": event_id or new_ulid(transaction.now),
        "name": name,
        "ts": ts or unix_ms(transaction.now),
        "user": {},
    }
    return event if v is None else {**event, "v": v}


def report_of(
    transaction: Transaction,
    *,
    run_id: str,
    function_id: str,
    events: Sequence[dict[str, Any]],
    status: Ending,
    result: Any,
    retriable: bool,
) -> Iterator[dict[str, Any]]:
    """The events that tell of a run's end.

    None where it was itself started by such an event: a function that listens to all ends would never come to rest. The
    one that `on_failure` and its like listen to carries the run's id, so that a run is reported once.
    """
    if events[0]["name"] in (FINISHED, FAILED):
        return
    data: dict[str, Any] = {
        "event": events[0],
        "events": [{key: value for key, value in event.items() if key != "user"} for event in events],
        "function_id": function_id,
        "result": result,
        "run_id": run_id,
    }
    if status != "completed":
        data["error"] = {"error": str(result.get("name")) if retriable else "NonRetriableError", **memo_error(result)}
    yield make_event(transaction, name=FINISHED, data=data)
    if status != "completed":
        yield make_event(transaction, name=FAILED if status == "failed" else CANCELLED, data=data, event_id=run_id)


def memo_error(error: Any) -> dict[str, Any]:
    """The part of an error object that a memo keeps; the SDK rebuilds its `StepError` from it."""
    fields = error if isinstance(error, dict) else {"message": str(error)}
    return {
        "message": str(fields.get("message") or ""),
        "name": str(fields.get("name") or "Error"),
        "stack": fields.get("stack"),
    }
