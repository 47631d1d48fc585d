"""The life of one run: started, its steps memoised, called again while nothing is open, ended once.

Every function here is one part of a transaction of the caller. Whether an event starts a run is `admission`, who calls the
app is `dispatch`, what an answer means is `settle`, what an event means is `events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agentic.local.engine.declarations import Concurrency, FunctionDeclaration
from agentic.local.engine.event_object import Ending, memo_error, report_of
from agentic.local.engine.expressions import key_of, number_of
from agentic.local.engine.flow import PRIORITY_SPAN
from agentic.local.engine.ids import new_ulid
from agentic.local.engine.store import Transaction, as_json

TOP = "step"
"""The step id that means: go on from the top, no step in particular."""


async def start_run(
    transaction: Transaction,
    function: FunctionDeclaration,
    events: Sequence[dict[str, Any]],
    *,
    parent: tuple[str, str] | None,
    due_at: datetime,
    singleton: str | None,
) -> str:
    """Create a run of `function`; the run's id.

    Args:
        transaction: where it is written.
        function: what runs.
        events: one whole event object, or several of a batch; keys and priority are those of the first.
        parent: the run and step that invoked it, which get its result; None for a run that an event started.
        due_at: when its first call is due.
        singleton: the key that no other running run of the function has; None where it may have company.
    """
    run_id, flow, event = new_ulid(transaction.now), function.flow, events[0]
    await transaction.run(
        "insert_run",
        id=run_id,
        function_id=function.id,
        event=as_json(event),
        events=as_json(list(events)) if len(events) > 1 else None,
        **_slots(function, event),
        priority=_priority(flow.priority, event),
        singleton=singleton,
        start_by=transaction.now + flow.start_timeout if flow.start_timeout else None,
        finish_s=flow.finish_timeout.total_seconds() if flow.finish_timeout else None,
        parent_run=parent[0] if parent else None,
        parent_step=parent[1] if parent else None,
    )
    await transaction.run("first_job", run_id=run_id, step=TOP, due_at=due_at)
    return run_id


async def follow_limits(transaction: Transaction, function: FunctionDeclaration) -> None:
    """Hold the runs that a function already has to the concurrency that it declares now."""
    for run in await transaction.all("running_of_function", function_id=function.id):
        await transaction.run("change_slots", id=run["id"], **_slots(function, run["event"]))


async def memoise(transaction: Transaction, run_id: str, *, step: str, name: str, memo: Any) -> None:
    """Record a finished step; a step that has a memo keeps it."""
    if await transaction.run("insert_step", run_id=run_id, id=step, name=name, memo=as_json(memo)):
        await transaction.run("push_stack", run_id=run_id, step=step)


async def go_on(transaction: Transaction, run_id: str, *, race: bool = False) -> None:
    """Call the function from the top when none of its steps is open any more, or at once in a racing parallel group."""
    state = await transaction.one("outstanding", run_id=run_id)
    if race or (state is not None and state["open"] == 0):
        await transaction.run("plan_job", run_id=run_id, step=TOP)


async def end_pause(transaction: Transaction, run_id: str, *, step: str, memo: Any) -> None:
    """End a sleep, a wait or an invocation with its memo, and let the run go on; nothing where it ended already."""
    pause = await transaction.one("take_pause", run_id=run_id, step=step)
    if pause is not None:
        await memoise(transaction, run_id, step=step, name=pause["name"], memo=memo)
        await go_on(transaction, run_id, race=pause["race"])


async def end_run(
    transaction: Transaction, run_id: str, *, status: Ending, result: Any, retriable: bool = True
) -> bool:
    """End a run, hand its result to the run that invoked it, if one did, and report it to functions that listen.

    Args:
        transaction: where it is written.
        run_id: which run.
        status: how it ends.
        result: the return value, or an error object with `name` and `message`.
        retriable: whether a failed run used up its attempts; False where the error forbade more.

    Returns:
        Whether it ended now; False where it had ended before.
    """
    run = await transaction.one("end_run", id=run_id, status=status, result=as_json(result))
    if run is None:
        return False
    await transaction.run("drop_jobs", run_id=run_id)
    await transaction.run("drop_pauses", run_id=run_id)
    if run["parent_run"] is not None:
        memo = {"data": result} if status == "completed" else {"error": memo_error(result)}
        await end_pause(transaction, run["parent_run"], step=run["parent_step"], memo=memo)
    for event in report_of(
        transaction,
        run_id=run_id,
        function_id=run["function_id"],
        events=run["events"] or [run["event"]],
        status=status,
        result=result,
        retriable=retriable,
    ):
        await transaction.run("tell_itself", event=as_json(event))
    return True


def _slots(function: FunctionDeclaration, event: dict[str, Any]) -> dict[str, list[Any]]:
    limits = [limit for limit in function.concurrency if limit.limit > 0]
    return {
        "slots": [_slot(function.id, limit, event) for limit in limits],
        "slot_limits": [limit.limit for limit in limits],
    }


def _slot(function_id: str, limit: Concurrency, event: dict[str, Any]) -> str:
    """What runs share that a limit counts together: beyond one function, the value alone, whatever path it came by."""
    value = key_of(limit.key, {"event": event}) if limit.key else ""
    return f"fn|{function_id}|{limit.key or ''}|{value}" if limit.scope == "fn" else f"{limit.scope}|{value}"


def _priority(expression: str | None, event: dict[str, Any]) -> int:
    seconds = number_of(expression, {"event": event}) if expression else None
    return max(-PRIORITY_SPAN, min(seconds or 0, PRIORITY_SPAN))
