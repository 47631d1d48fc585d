"""What lies between an event and a run: rate limits, debounces, batches, singletons, throttles.

Each rule is a row changed in the transaction that took the event in, so an engine that dies loses neither the event nor
its place. An event that a rate limit or a singleton drops is dropped for good, as on the real server.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from agentic.local.engine.declarations import FunctionDeclaration
from agentic.local.engine.expressions import key_of, matches
from agentic.local.engine.flow import Batch, Debounce, Rate
from agentic.local.engine.rates import next_slot
from agentic.local.engine.runs import end_run, start_run
from agentic.local.engine.store import Transaction, as_json

Event = dict[str, Any]

_log = logging.getLogger(__name__)
_EVERYTHING = ""
_NOT_MEANT = "false"  # a key expression that comes to false exempts the event from its rule


async def admit(
    transaction: Transaction, function: FunctionDeclaration, event: Event, *, parent: tuple[str, str] | None = None
) -> bool:
    """Let an event start a run of `function`: now, later, with others, or never.

    Args:
        transaction: where it is written.
        function: what is to run.
        event: the whole event object.
        parent: the run and step that invoked it; then `function` neither debounces nor batches.

    Returns:
        Whether a run was or will be started; False where a rate limit or a singleton dropped the event.
    """
    flow = function.flow
    batch = flow.batch
    if batch is not None and (batch.condition is None or matches(batch.condition, {"event": event})):
        await _batch(transaction, function, batch, event)
        return True
    if not await _within_rate_limit(transaction, function, event):
        return False
    if flow.debounce is not None:
        await _debounce(transaction, function, flow.debounce, event)
        return True
    return await _start(transaction, function, [event], parent=parent)


async def release(
    transaction: Transaction,
    function: FunctionDeclaration,
    events: Sequence[Event],
    *,
    kind: Literal["batch", "debounce"],
    key: str,
) -> None:
    """Start the run for which a debounce or a batch held these events."""
    await transaction.run("drop_held", function_id=function.id, kind=kind, key=key)
    # A debounced event passed the rate limit when it came in.
    if kind == "debounce" or await _within_rate_limit(transaction, function, events[0]):
        await _start(transaction, function, events, parent=None)


async def _within_rate_limit(transaction: Transaction, function: FunctionDeclaration, event: Event) -> bool:
    rate = function.flow.rate_limit
    key = _key(rate.key if rate else None, event)
    if rate is None or key == _NOT_MEANT:
        return True
    slot = next_slot(rate, used_until=await _used_until(transaction, function, "rate_limit", key), now=transaction.now)
    if slot.at > transaction.now:
        _log.info("%s was not started by event %s: its rate limit is reached", function.id, event["id"])
        return False
    await transaction.run("use_rate", function_id=function.id, kind="rate_limit", key=key, used_until=slot.used_until)
    return True


async def _debounce(transaction: Transaction, function: FunctionDeclaration, rule: Debounce, event: Event) -> None:
    key = _key(rule.key, event)
    held = await transaction.one("held_events", function_id=function.id, kind="debounce", key=key)
    last, first_at = (held["events"][0], held["first_at"]) if held else (event, transaction.now)
    due_at = transaction.now + rule.period
    await transaction.run(
        "hold_events",
        function_id=function.id,
        kind="debounce",
        key=key,
        events=as_json([event if event["ts"] >= last["ts"] else last]),
        due_at=min(due_at, first_at + rule.timeout) if rule.timeout else due_at,
    )


async def _batch(transaction: Transaction, function: FunctionDeclaration, rule: Batch, event: Event) -> None:
    key = _key(rule.key, event)
    held = await transaction.one("held_events", function_id=function.id, kind="batch", key=key)
    events = [*(held["events"] if held else ()), event]
    if len(events) >= rule.max_size:
        await release(transaction, function, events, kind="batch", key=key)
        return
    first_at = held["first_at"] if held else transaction.now
    await transaction.run(
        "hold_events",
        function_id=function.id,
        kind="batch",
        key=key,
        events=as_json(events),
        due_at=first_at + rule.timeout,
    )


async def _start(
    transaction: Transaction,
    function: FunctionDeclaration,
    events: Sequence[Event],
    *,
    parent: tuple[str, str] | None,
) -> bool:
    singleton = None
    if (rule := function.flow.singleton) is not None and (key := _key(rule.key, events[0])) != _NOT_MEANT:
        singleton = key
        running = await transaction.one("running_singleton", function_id=function.id, singleton=key)
        if running is not None and rule.mode == "skip":
            _log.info("%s was not started by event %s: run %s is on", function.id, events[0]["id"], running["id"])
            return False
        if running is not None:
            message = f"replaced by a run on event {events[0]['id']}"
            error = {"name": "FunctionCancelled", "message": message}
            await end_run(transaction, running["id"], status="cancelled", result=error)
    due_at = transaction.now
    if (throttle := function.flow.throttle) is not None:
        key = _key(throttle.key, events[0])
        due_at = await _place(transaction, function, throttle, key)
    await start_run(transaction, function, events, parent=parent, due_at=due_at, singleton=singleton)
    return True


async def _place(transaction: Transaction, function: FunctionDeclaration, throttle: Rate, key: str) -> Any:
    used_until = await _used_until(transaction, function, "throttle", key)
    slot = next_slot(throttle, used_until=used_until, now=transaction.now)
    await transaction.run("use_rate", function_id=function.id, kind="throttle", key=key, used_until=slot.used_until)
    return slot.at


async def _used_until(transaction: Transaction, function: FunctionDeclaration, kind: str, key: str) -> Any:
    row = await transaction.one("rate_used", function_id=function.id, kind=kind, key=key)
    return row["used_until"] if row else None


def _key(expression: str | None, event: Event) -> str:
    return _EVERYTHING if expression is None else key_of(expression, {"event": event})
