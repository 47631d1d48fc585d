"""Runs the inline reads of a turn through the run's hooks, a few at once.

agno starts every call of an answer at once, has no cap, and turns an exception into text for the model; this is where both end.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import SegmentAbort, SegmentStop
from agentic.runtime.agent.ports import ProposedCall, TurnHooks

PARALLEL_READS = 8

T = TypeVar("T")


async def guarded(stop: SegmentStop, code: str, work: Awaitable[T]) -> T:
    """Await a hook; whatever it raises ends the segment, since no ``Exception`` may reach the loop (ADR 0003).

    Raises:
        SegmentAbort: the hook's own, or ``failed`` under ``code`` with the exception as its cause.
    """
    try:
        return await work
    except SegmentAbort as abort:
        if stop.abort is None:
            stop.abort = abort
        raise stop.abort from None
    except Exception as exc:
        raise stop.record("failed", code, exc) from exc
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled this task: the hook let a cancellation of its own escape, which agno would take for the caller's.
        raise stop.record("failed", code, exc) from exc


class InlineReads:
    """The reads of one turn, from the router's plan to their answers."""

    def __init__(self, hooks: TurnHooks, stop: SegmentStop) -> None:
        self._hooks = hooks
        self._stop = stop
        self._slots = asyncio.Semaphore(PARALLEL_READS)
        self._planned: dict[str, ProposedCall] = {}
        self.trust: dict[str, Trust] = {}
        """Label of each answer, by call id."""

    def plan(self, call: ProposedCall) -> None:
        """Admit a call; ``run`` refuses every other."""
        self._planned[call.model_call_id] = call

    async def run(self, call_id: str) -> str:
        """Entry point of every read function: run the planned call and return the model's text."""
        async with self._slots:
            self._stop.check()
            call = self._planned.pop(call_id)
            answer = await guarded(self._stop, "read_failed", self._hooks.read(call))
            self.trust[call_id] = answer.trust
            return answer.text
