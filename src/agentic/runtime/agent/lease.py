"""Keeps the lease of a run while it is led, by a task tied to neither stream nor handler (ADR 0002).

If the lease is lost, or cannot be renewed before it runs out, the segment is stopped at once: another worker may lead the run. A
segment that gives it back itself is left alone. A renewal also hears that a person cancelled the run: a model that is being asked is
left, handlers are told and settle, and the segment ends.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from agentic.contract.clock import Clock
from agentic.contract.errors import StorageUnavailable
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.timings import Timings
from agentic.services.runs.models import Lease, Renewed
from agentic.services.runs.ports import RunStore


@asynccontextmanager
async def kept(
    lease: Lease, *, store: RunStore, stop: SegmentStop, timings: Timings, clock: Clock, segment: asyncio.Task[Any]
) -> AsyncIterator[asyncio.Task[None]]:
    """Renew the lease until the block ends; on loss record the stop and cancel the segment's task. Yields the task that renews."""
    keeper = asyncio.create_task(_keep(lease, store=store, stop=stop, timings=timings, clock=clock, segment=segment))
    try:
        yield keeper
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


async def _keep(
    lease: Lease, *, store: RunStore, stop: SegmentStop, timings: Timings, clock: Clock, segment: asyncio.Task[Any]
) -> None:
    ends_at = clock.monotonic() + timings.lease_s
    wait_s = timings.renew_s
    while True:
        await asyncio.sleep(wait_s)
        asked_at = clock.monotonic()
        try:
            renewed = await _in_time(
                store.renew(lease, lease_s=timings.lease_s), ends_at - asked_at, moment_s=timings.renew_s / 5
            )
        except (StorageUnavailable, TimeoutError):
            held = clock.monotonic() < ends_at
            wait_s = timings.renew_s / 5
        else:
            held = renewed is not None
            ends_at = asked_at + timings.lease_s
            wait_s = timings.renew_s
            if renewed is not None and renewed.cancelled:
                stop.cancelled.set()
                stop.leave.ask("cancelled", "cancelled")
        if not held and stop.letting_go:
            return
        if not held:
            stop.lost = True
            stop.record("lease_lost", "lease_lost")
            stop.leave.ask("lease_lost", "lease_lost")
            segment.cancel()
            return


async def _in_time(renewal: Coroutine[Any, Any, Renewed | None], left_s: float, *, moment_s: float) -> Renewed | None:
    """The answer of a renewal while the lease lasts: a pool without connections would wait for longer.

    A process that stood still finds the answer and the end of the time at once; a moment is what it takes to read the answer.

    Raises:
        TimeoutError: there is none.
    """
    task = asyncio.ensure_future(renewal)
    try:
        for wait_s in (max(0.0, left_s), moment_s):
            if (await asyncio.wait({task}, timeout=wait_s))[0]:
                return task.result()
        raise TimeoutError
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
