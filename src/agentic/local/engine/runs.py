"""The life of one run: started, its steps memoised, called again while nothing is open, ended once.

Every function here is one part of a transaction of the caller. Who calls the app is `dispatch`, what an answer means is
`settle`, what an event means is `events`.
"""

from __future__ import annotations

from typing import Any, Literal

from agentic.local.engine.declarations import FunctionDeclaration
from agentic.local.engine.expressions import key_of
from agentic.local.engine.ids import new_ulid
from agentic.local.engine.store import Transaction, as_json

TOP = "step"
"""The step id that means: go on from the top, no step in particular."""


async def start_run(
    transaction: Transaction,
    function: FunctionDeclaration,
    event: dict[str, Any],
    *,
    parent: tuple[str, str] | None = None,
) -> str:
    """Create a run of `function` on `event` with its first call due now; the run's id.

    Args:
        transaction: where it is written.
        function: what runs.
        event: the whole event object.
        parent: the run and step that invoked it, which get its result; None for a run that an event started.
    """
    run_id = new_ulid(transaction.now)
    limits = [limit for limit in function.concurrency if limit.limit > 0]
    await transaction.run(
        "insert_run",
        id=run_id,
        function_id=function.id,
        event=as_json(event),
        slots=[
            f"{limit.scope}|{function.id if limit.scope == 'fn' else ''}|{limit.key or ''}|"
            f"{key_of(limit.key, {'event': event}) if limit.key else ''}"
            for limit in limits
        ],
        slot_limits=[limit.limit for limit in limits],
        parent_run=parent[0] if parent else None,
        parent_step=parent[1] if parent else None,
    )
    await transaction.run("plan_job", run_id=run_id, step=TOP)
    return run_id


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
    transaction: Transaction, run_id: str, *, status: Literal["completed", "failed", "cancelled"], result: Any
) -> dict[str, Any] | None:
    """End a run and hand its result to the run that invoked it, if one did.

    Args:
        transaction: where it is written.
        run_id: which run.
        status: how it ends.
        result: the return value, or an error object with `name` and `message`.

    Returns:
        The ended run's row, or None where it had ended before.
    """
    run = await transaction.one("end_run", id=run_id, status=status, result=as_json(result))
    if run is None:
        return None
    await transaction.run("drop_jobs", run_id=run_id)
    await transaction.run("drop_pauses", run_id=run_id)
    if run["parent_run"] is not None:
        memo = {"data": result} if status == "completed" else {"error": memo_error(result)}
        await end_pause(transaction, run["parent_run"], step=run["parent_step"], memo=memo)
    return run


def memo_error(error: Any) -> dict[str, Any]:
    """The part of an error object that a memo keeps; the SDK rebuilds its `StepError` from it."""
    fields = error if isinstance(error, dict) else {"message": str(error)}
    return {
        "message": str(fields.get("message") or ""),
        "name": str(fields.get("name") or "Error"),
        "stack": fields.get("stack"),
    }
