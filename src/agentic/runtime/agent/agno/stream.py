"""Consumes agno's event stream to its end, whatever becomes of the caller.

Leaving the stream early, or cancelling the task inside it, cuts the loop off between an answer that was paid for and the hook
that stores it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agentic.runtime.agent.aborts import Leave, SegmentStop

T = TypeVar("T")

WIND_DOWN_S = 60.0
"""How long a cancelled caller waits for the loop to reach its next hook, where it stops."""


async def exhaust(
    work: Awaitable[T], stop: SegmentStop, wind_down_s: float, *, leave: Leave, asking: Callable[[], bool]
) -> T:
    """Run ``work`` in a task of its own, to its end.

    When the caller is cancelled the stop is recorded, so that the loop ends at its next hook; the cancellation goes on once it
    has ended, or after ``wind_down_s`` seconds, when the task is cancelled after all.

    Args:
        leave: asked when nobody wants the model's answer any more. A request under way is cut off then; anything else goes on
            to the loop's next hook.
        asking: whether the model is being asked at this moment.

    Raises:
        SegmentAbort: the model was left.
    """
    task = asyncio.ensure_future(work)
    cutting = asyncio.ensure_future(_cut(task, stop, leave, asking))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            stop.record("cancelled", "caller_cancelled")
            await _wind_down(task, wind_down_s)
        elif not _cancelled_from_outside():
            stop.check()
        raise
    finally:
        cutting.cancel()
        if task.done() and not task.cancelled():
            task.exception()  # seen here, so that a stop nobody awaits any more is not reported as lost


async def _cut(task: "asyncio.Future[T]", stop: SegmentStop, leave: Leave, asking: Callable[[], bool]) -> None:
    abort = await leave.wait()
    if asking():
        stop.record(abort.kind, abort.code)
        task.cancel()


def _cancelled_from_outside() -> bool:
    caller = asyncio.current_task()
    return caller is not None and caller.cancelling() > 0


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
