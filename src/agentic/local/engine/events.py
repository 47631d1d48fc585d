"""What an event does when it comes in: cancels, ends waits, starts functions, in this order.

An event that arrives before the wait for it is registered is lost, and the wait runs to its time-out: the real server
does the same, so nothing here remembers events for later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from agentic.local.engine.admission import admit
from agentic.local.engine.declarations import EventTrigger, FunctionDeclaration, read_function
from agentic.local.engine.event_object import make_event
from agentic.local.engine.expressions import key_of, matches
from agentic.local.engine.ids import new_ulid, seeded_ulid
from agentic.local.engine.runs import end_pause, end_run
from agentic.local.engine.store import Transaction

START_KEY_HOLDS = timedelta(hours=24)
"""How long an event id, or the value of an idempotency expression, keeps a function from starting again."""

_log = logging.getLogger(__name__)


class BadEvent(ValueError):
    """What was sent is not an event; the message says why."""


def read_events(body: Any, *, transaction: Transaction, seed: str | None) -> list[dict[str, Any]]:
    """The events of a request, complete: with id, time stamp, data and user.

    Args:
        body: one event object or a list of them.
        transaction: whose time stamps events that carry none.
        seed: the SDK's `x-inngest-event-id-seed` header, which keeps the ids when it sends the request again.

    Raises:
        BadEvent: an entry is not an event, or takes a name that only the engine may send.
    """
    raw = body if isinstance(body, list) else [body]
    complete = []
    for index, event in enumerate(raw):
        name = event.get("name") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(name, str) or not name:
            raise BadEvent(f"event {index} has no name")
        if name.startswith("inngest/"):
            raise BadEvent(f"event {index} is named {name!r}, which only the server may send")
        data, event_id, ts = event.get("data"), event.get("id"), event.get("ts")
        if data is not None and not isinstance(data, dict):
            raise BadEvent(f"the data of event {index} is not an object")
        if not isinstance(event_id or "", str) or isinstance(ts, bool) or not isinstance(ts or 0, int):
            raise BadEvent(f"the id of event {index} must be text and its ts whole milliseconds")
        if "\0" in f"{name}{event_id or ''}":
            raise BadEvent(f"the name or id of event {index} holds a zero byte")
        event_id = event_id or seeded_ulid(seed, index) or new_ulid(transaction.now)
        complete.append(make_event(transaction, name=name, data=data or {}, event_id=event_id, ts=ts, v=event.get("v")))
    return complete


async def take_in(transaction: Transaction, events: Sequence[dict[str, Any]]) -> None:
    """Let each event do its work, in order."""
    functions = [read_function(row["config"]) for row in await transaction.all("active_functions")]
    for event in events:
        await _cancel(transaction, event, functions)
        await _end_waits(transaction, event)
        for function in functions:
            if any(_triggers(trigger, event) for trigger in function.triggers):
                await start_once(transaction, function, event)


async def start_once(transaction: Transaction, function: FunctionDeclaration, event: dict[str, Any]) -> None:
    """Give `event` to `function` unless it had this event id, or this idempotency key, within 24 hours.

    Whether a run starts at once is the function's flow control.
    """
    keys = [f"id:{event['id']}"]
    if function.idempotency is not None:
        keys.append(f"key:{key_of(function.idempotency, {'event': event})}")
    until = transaction.now + START_KEY_HOLDS
    for key in keys:
        if await transaction.one("claim_start", function_id=function.id, key=key, until=until) is None:
            _log.info("%s was not started again by event %s (%s)", function.id, event["id"], key)
            return
    await admit(transaction, function, event)


async def _cancel(transaction: Transaction, event: dict[str, Any], functions: list[FunctionDeclaration]) -> None:
    for function in functions:
        for rule in function.cancellations:
            if rule.event != event["name"]:
                continue
            for run in await transaction.all("running_of_function", function_id=function.id):
                in_time = rule.timeout is None or transaction.now <= run["started_at"] + rule.timeout
                if in_time and _holds(rule.expression, {"event": run["event"], "async": event}):
                    error = {"name": "FunctionCancelled", "message": f"cancelled by event {event['id']}"}
                    await end_run(transaction, run["id"], status="cancelled", result=error)


async def _end_waits(transaction: Transaction, event: dict[str, Any]) -> None:
    for wait in await transaction.all("waiting_for", event_name=event["name"]):
        if _holds(wait["expression"], {"event": wait["event"], "async": event}):
            await end_pause(transaction, wait["run_id"], step=wait["step"], memo=event)


def _triggers(trigger: EventTrigger, event: dict[str, Any]) -> bool:
    pattern = re.escape(trigger.event).replace(r"\*", ".*")
    return re.fullmatch(pattern, event["name"], re.DOTALL) is not None and _holds(trigger.expression, {"event": event})


def _holds(expression: str | None, scope: dict[str, Any]) -> bool:
    return expression is None or matches(expression, scope)
