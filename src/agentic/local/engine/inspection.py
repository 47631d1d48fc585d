"""What the engine did and still has to do, as values for people and tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentic.local.engine.store import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class StepView:
    """A finished step: its name, and the memo the function gets back (None for a sleep or a wait that ran out)."""

    name: str
    memo: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """One run of a function.

    Attributes:
        run_id: its ULID.
        function_id: app and function, as in `shop-advance`.
        status: running, completed, failed or cancelled.
        event: the event it was started by.
        result: what it returned, or its error object; None while it runs.
        steps: finished steps in the order they finished.
        waits_for: names of the steps it sleeps in or waits with.
        calls: how many calls to the app are owed or in flight.
        started_at: when it was started.
        ended_at: when it ended; None while it runs.
    """

    run_id: str
    function_id: str
    status: str
    event: Any
    result: Any
    steps: tuple[StepView, ...]
    waits_for: tuple[str, ...]
    calls: int
    started_at: datetime
    ended_at: datetime | None


async def view_runs(transaction: Transaction, *, function_id: str | None = None) -> list[RunView]:
    """All runs, oldest first; those of one function where it is named."""
    jobs = [job["run_id"] for job in await transaction.all("all_jobs")]
    pauses = await transaction.all("all_pauses")
    views = []
    for run in await transaction.all("all_runs", function_id=function_id):
        steps = await transaction.all("steps_of_run", run_id=run["id"])
        views.append(
            RunView(
                run_id=run["id"],
                function_id=run["function_id"],
                status=run["status"],
                event=run["event"],
                result=run["result"],
                steps=tuple(StepView(name=step["name"], memo=step["memo"]) for step in steps),
                waits_for=tuple(pause["name"] for pause in pauses if pause["run_id"] == run["id"]),
                calls=jobs.count(run["id"]),
                started_at=run["started_at"],
                ended_at=run["ended_at"],
            )
        )
    return views


async def open_work(transaction: Transaction) -> list[str]:
    """A line for each call that is owed and each pause that is over; empty when nothing can be done now.

    Sleeps, waits and held events whose time has not come are not work. Calls that wait for a retry are.
    """
    lines = [
        f"run {job['run_id']} {job['step']} attempt {job['attempt']}"
        f"{' in flight' if job['in_flight'] else ''}{' app unreachable' if job['unreachable'] else ''}"
        for job in await transaction.all("all_jobs")
    ]
    inbox = await transaction.one("inbox_size")
    if inbox is not None and inbox["size"]:
        lines.append(f"{inbox['size']} reports of ended runs on their way")
    lines += [f"{held['kind']} of {held['function_id']} is over" for held in await transaction.all("due_held")]
    due = [pause for pause in await transaction.all("all_pauses") if pause["due_at"] <= transaction.now]
    return lines + [f"run {pause['run_id']} {pause['name']} is over" for pause in due]
