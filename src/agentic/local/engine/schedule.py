"""What falls due: pauses that are over, crons, and calls to lease. One transaction a tick.

The tick decides what is to be done and by whom; making the calls is `dispatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agentic.local.engine.calls import Call
from agentic.local.engine.cron import parse_cron
from agentic.local.engine.declarations import read_function
from agentic.local.engine.events import make_event, start_once
from agentic.local.engine.runs import end_pause
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
    for pause in await transaction.all("due_pauses"):
        memo: Any = None
        if pause["kind"] == "invoke":
            memo = {"error": {"name": "InvokeTimedOut", "message": "the invoked function took too long", "stack": None}}
        await end_pause(transaction, pause["run_id"], step=pause["step"], memo=memo)
    for cron in await transaction.all("due_crons"):
        await _fire(transaction, cron)
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
    await transaction.run("prune_runs", before=transaction.now - KEEP_RUNS)


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
        run_id=row["run_id"],
        function_id=row["function_id"],
        url=row["url"],
        step=row["step"],
        attempt=row["attempt"],
        max_attempts=read_function(row["config"]).max_attempts,
        event=row["event"],
        stack=tuple(row["stack"]),
        memos={memo["id"]: memo["memo"] for memo in memos},
        version=row["version"],
        has_company=row["has_company"],
        unreachable_since=row["unreachable_since"],
        unreachable_count=row["unreachable_count"],
    )
