"""What falls due: pauses that are over, held events, late runs, crons, calls to lease. One transaction a tick.

The tick decides what is to be done and by whom; making the calls is `dispatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agentic.local.engine.admission import release
from agentic.local.engine.calls import Call
from agentic.local.engine.cron import parse_cron
from agentic.local.engine.declarations import read_function
from agentic.local.engine.event_object import make_event
from agentic.local.engine.events import start_once, take_in
from agentic.local.engine.runs import end_pause, end_run
from agentic.local.engine.store import Transaction

KEEP_RUNS = timedelta(days=7)
"""For how long an ended run can still be looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """What one tick found.

    Attributes:
        calls: leased for this engine, to be made now.
        next_at: when something falls due by itself; None when nothing will.
    """

    calls: tuple[Call, ...]
    next_at: datetime | None


async def tick(transaction: Transaction, *, engine: str, room: int, lease_s: float) -> Tick:
    """End what is over, fire what is due, lease up to `room` calls.

    Args:
        transaction: where it is written.
        engine: who leases.
        room: how many more calls this engine can make at once.
        lease_s: for how long a lease stands unless it is renewed, in seconds.
    """
    for late in await transaction.all("late_runs"):
        error = {"name": "FunctionCancelled", "message": f"it did not {late['late']} in the time it declares"}
        await end_run(transaction, late["id"], status="cancelled", result=error)
    for pause in await transaction.all("due_pauses"):
        await end_pause(transaction, pause["run_id"], step=pause["step"], memo=_over(pause["kind"]))
    for held in await transaction.all("due_held"):
        await _release(transaction, held)
    for cron in await transaction.all("due_crons"):
        await _fire(transaction, cron)
    while told := await transaction.all("take_inbox"):
        await take_in(transaction, [row["event"] for row in told])
    calls: list[Call] = []
    lease_expires_at = transaction.now + timedelta(seconds=lease_s)
    while len(calls) < room:
        job = await transaction.one("claim_job", engine=engine, lease_expires_at=lease_expires_at)
        if job is None:
            break
        calls.append(await _call(transaction, job["id"]))
    due = await transaction.one("next_due")
    return Tick(calls=tuple(calls), next_at=due["at"] if due else None)


async def prune(transaction: Transaction) -> None:
    """Forget start keys that hold nothing back and runs that ended long ago."""
    await transaction.run("prune_starts")
    await transaction.run("prune_rates")
    await transaction.run("prune_runs", before=transaction.now - KEEP_RUNS)


def _over(kind: str) -> Any:
    """The memo of a pause whose time is over."""
    if kind != "invoke":
        return None
    message = "the invoked function did not end in time"
    return {"error": {"name": "InngestInvokeTimeoutError", "message": message, "stack": None}}


async def _release(transaction: Transaction, held: dict[str, Any]) -> None:
    if held["config"] is None:
        names = {name: held[name] for name in ("function_id", "kind", "key")}
        await transaction.run("drop_held", **names)  # its app no longer lists the function, which starts no more
        return
    function = read_function(held["config"])
    await release(transaction, function, held["events"], kind=held["kind"], key=held["key"])


async def _fire(transaction: Transaction, cron: dict[str, Any]) -> None:
    # Times missed while no engine ran are made up for once, by the stored one. Its event id is the planned time, so two
    # engines, or one that died here, start the function once for it.
    at = cron["next_at"].astimezone(transaction.now.tzinfo).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {"cron": cron["expression"], "fireAt": at, "scheduledAt": at}
    event = make_event(transaction, name="inngest/scheduled.timer", data=data, event_id=at)
    await start_once(transaction, read_function(cron["config"]), event)
    next_at = parse_cron(cron["expression"]).next_after(transaction.now)
    await transaction.run("move_cron", function_id=cron["function_id"], expression=cron["expression"], next_at=next_at)


async def _call(transaction: Transaction, job_id: int) -> Call:
    (row,) = await transaction.all("call_of_job", id=job_id)  # one writer at a time: it cannot have gone
    memos = await transaction.all("steps_of_run", run_id=row["run_id"])
    return Call(
        job_id=row["id"],
        leased_at=transaction.now,
        begun=row["begun"],
        run_id=row["run_id"],
        function_id=row["function_id"],
        url=row["url"],
        step=row["step"],
        attempt=row["attempt"],
        max_attempts=read_function(row["config"]).max_attempts,
        events=tuple(row["events"] or [row["event"]]),
        stack=tuple(row["stack"]),
        memos={memo["id"]: memo["memo"] for memo in memos},
        version=row["version"],
        has_company=row["has_company"],
        unreachable_since=row["unreachable_since"],
        unreachable_count=row["unreachable_count"],
    )
