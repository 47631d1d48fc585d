"""The ways out of a segment: each gives the lease back in one fenced write, and sends what that write left to be sent."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, assert_never
from uuid import UUID

import sentry_sdk

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.clock import Clock
from agentic.contract.errors import RunEnded, StorageUnavailable
from agentic.contract.faults import where
from agentic.runtime.agent.aborts import SegmentAbort, SegmentStop
from agentic.runtime.agent.checkpoint import Segment
from agentic.runtime.agent.money import unpriced
from agentic.runtime.agent.timings import Timings, fault_wait_s
from agentic.services.runs.models import Append, LedRun, Moved, RunEnd, Unpriced
from agentic.services.runs.ports import RunStore
from agentic.services.tools.records import JobWait, SpanRecord, SpanStatus, Trail

_log = logging.getLogger(__name__)
Flush = Callable[[Sequence[UUID]], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Advanced:
    """What one advance did. ``due_at`` is set when the run comes back at a time."""

    state: Literal["idle", "parked", "released", "succeeded", "failed", "cancelled", "lost"]
    due_at: datetime | None = None


class Endings:
    """Ends segments."""

    def __init__(self, *, store: RunStore, clock: Clock, flush: Flush, timings: Timings, format: str) -> None:
        self._store = store
        self._clock = clock
        self._flush = flush
        self._timings = timings
        self._format = format

    async def park(self, segment: Segment, questions: Sequence[ApprovalRequest]) -> Advanced:
        """Wait for a person."""
        self._close(segment, SpanStatus.OK, "parked")
        moved = await self._store.park(
            segment.lease,
            await segment.collect(),
            questions,
            expires_s=self._timings.approval_expires_s,
        )
        return await self._moved(moved, Advanced(state="parked"))

    async def park_on_job(self, segment: Segment, waits: JobWait) -> Advanced:
        """Wait for a provider."""
        self._close(segment, SpanStatus.OK, "parked")
        moved = await self._store.park_on_job(segment.lease, await segment.collect(), waits)
        return await self._moved(moved, Advanced(state="parked"))

    async def release(
        self,
        segment: Segment,
        *,
        due_at: datetime | None = None,
        due_in_s: float | None = None,
        orderly: bool = True,
        provider_failures: int = 0,
    ) -> Advanced:
        """Let another segment go on, at once or at a time; one that is not in order counts as an attempt without progress."""
        self._close(segment, SpanStatus.OK if orderly else SpanStatus.ERROR, "released")
        moved = await self._store.release(
            segment.lease,
            await segment.collect(),
            due_at=due_at,
            due_in_s=due_in_s,
            orderly=orderly,
            provider_failures=provider_failures,
        )
        return await self._moved(moved, Advanced(state="released"))

    async def finish(
        self, segment: Segment, end: RunEnd, *, said: str | None = None, fault: Exception | None = None
    ) -> Advanced:
        """End the run."""
        status = SpanStatus.ERROR if end.state == "failed" else SpanStatus.OK
        self._close(
            segment, status, end.error_code or end.state, said=said or (str(fault) if fault is not None else None)
        )
        moved = await self._store.finish(segment.lease, await segment.collect(), end)
        if isinstance(moved, Unpriced):
            refused = unpriced(moved)
            return await self.finish(segment, ended_by(refused), said=str(refused))
        return await self._moved(moved, Advanced(state=end.state))

    async def aborted(self, segment: Segment, led: LedRun, abort: SegmentAbort) -> Advanced:
        """End a segment that was stopped from inside the loop."""
        match abort.kind:
            case "lease_lost":
                return Advanced(state="lost")
            case "slice":
                return await self.release(segment)
            case "cancelled":
                return await self.finish(segment, RunEnd(state="cancelled"))
            case "ceiling":
                return await self.finish(
                    segment,
                    RunEnd(state="succeeded", partial_reason=abort.code),
                    said=str(abort.cause) if isinstance(abort.cause, RunEnded) else None,
                )
            case "failed":
                if abort.code == "read_tool_needs_approval":
                    return await self.finish(segment, RunEnd(state="failed", error_code=abort.code))
                if isinstance(abort.cause, RunEnded):
                    return await self.finish(segment, ended_by(abort.cause), said=str(abort.cause))
                cause = abort.cause if isinstance(abort.cause, Exception) else abort
                if isinstance(cause, StorageUnavailable):
                    raise cause
                report(cause, led)
                return await self.faulted(segment, led, cause)
            case _ as never:
                assert_never(never)

    async def faulted(self, segment: Segment, led: LedRun, fault: BaseException) -> Advanced:
        """A fault of the platform: the run comes back after a growing wait, and fails as a crash loop when that does not help."""
        wait_s = fault_wait_s(self._timings, led.attempts_without_progress)
        segment.fault = type(fault).__name__
        return await self.release(segment, due_in_s=wait_s, orderly=False)

    async def unopened(self, led: LedRun, stop: SegmentStop, fault: Exception, *, over: RunEnd | None) -> Advanced:
        """A run of which no segment can be made, for this deployment at least: it ends when it is over, else another tries."""
        stop.letting_go = True
        end = ended_by(fault) if isinstance(fault, RunEnded) else over
        if end is not None:
            code = end.error_code or end.state
            ended = await self._store.finish(led.lease, self._only_its_span(led, code, fault), end)
            # only a success is held back, and what cannot be opened never succeeds
            assert not isinstance(ended, Unpriced)
            return await self._moved(ended, Advanced(state=end.state))
        report(fault, led)
        wait_s = fault_wait_s(self._timings, led.attempts_without_progress)
        nothing = self._only_its_span(led, "released", fault)
        moved = await self._store.release(led.lease, nothing, due_in_s=wait_s, orderly=False)
        return await self._moved(moved, Advanced(state="released"))

    async def _moved(self, moved: Moved | None, advanced: Advanced) -> Advanced:
        if moved is None:
            return Advanced(state="lost")
        if moved.nudge is not None:
            await self._flush([moved.nudge])
        return replace(advanced, due_at=moved.due_at)

    def _close(self, segment: Segment, status: SpanStatus, code: str, *, said: str | None = None) -> None:
        """Close the segment's span; the statement that gives the lease back follows."""
        segment.stop.letting_go = True
        opened = segment.opened
        assert opened is not None
        attributes = {
            "end": code,
            **({"fault": segment.fault} if segment.fault else {}),
            **({"said": said[:500]} if said else {}),
        }
        closed = SpanRecord(
            id=opened.id,
            parent_id=None,
            kind="segment",
            name=opened.name,
            started_at=opened.started_at,
            ended_at=max(self._clock.now(), opened.started_at),
            status=status,
            code=None if status is SpanStatus.OK else code,
            attributes=attributes,
        )
        segment.trail.spans.append(closed)

    def _only_its_span(self, led: LedRun, code: str, fault: Exception) -> Append:
        """What a segment that never began leaves: that it was there."""
        span = SpanRecord(
            id=led.segment_id,
            parent_id=None,
            kind="segment",
            name=f"segment {led.lease.fence}",
            started_at=led.leased_at,
            ended_at=max(self._clock.now(), led.leased_at),
            status=SpanStatus.ERROR,
            code=code,
            attributes={"end": code, "fault": type(fault).__name__},
        )
        return Append(format=self._format, trail=Trail(spans=[span]))


def ended_by(ended: RunEnded) -> RunEnd:
    """How the run stands that this ended."""
    match ended.status:
        case "cancelled":
            return RunEnd(state="cancelled")
        case "succeeded":
            return RunEnd(state="succeeded", partial_reason=ended.code)
        case _:
            return RunEnd(state="failed", error_code=ended.code)


def report(fault: BaseException, led: LedRun) -> None:
    """Tell operators."""
    _log.error("run %s met a fault: %s", led.lease.run_id, where(fault))
    sentry_sdk.capture_message(f"run {led.lease.run_id} met a fault: {type(fault).__name__}", level="error")
