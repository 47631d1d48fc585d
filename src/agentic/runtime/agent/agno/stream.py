"""Consumes agno's event stream to its end, whatever becomes of the caller.

Leaving the stream early, or cancelling the task inside it, cuts the loop off between an answer that was paid for and the hook
that stores it.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from agentic.runtime.agent.aborts import SegmentStop

T = TypeVar("T")

WIND_DOWN_S = 60.0
"""How long a cancelled caller waits for the loop to reach its next hook, where it stops."""


async def exhaust(work: Awaitable[T], stop: SegmentStop, wind_down_s: float = WIND_DOWN_S) -> T:
    """Run ``work`` in a task of its own, to its end.

    When the caller is cancelled the stop is recorded, so that the loop ends at its next hook; the cancellation goes on once it
    has ended, or after ``wind_down_s`` seconds, when the task is cancelled after all.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            stop.record("cancelled", "caller_cancelled")
            await _wind_down(task, wind_down_s)
        raise
    finally:
        if task.done() and not task.cancelled():
            task.exception()  # seen here, so that a stop nobody awaits any more is not reported as lost


async def _wind_down(task: "asyncio.Future[T]", wind_down_s: float) -> None:
    """Wait for the task through further cancellations of the caller; cancel it when the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wind_down_s
    while not task.done() and loop.time() < until:
        try:
            await asyncio.wait({task}, timeout=until - loop.time())
        except asyncio.CancelledError:
            continue
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=wind_down_s)
