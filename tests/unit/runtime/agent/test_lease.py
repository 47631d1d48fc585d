"""The keeper of a lease: what it does when the database neither renews nor refuses."""

import asyncio
from typing import Any, cast
from uuid import uuid4

from agentic.contract.clock import SystemClock
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.lease import kept
from agentic.runtime.agent.timings import Timings
from agentic.services.runs.models import Lease, Renewed
from agentic.services.runs.ports import RunStore

BOUND_S = 20


LEASE = Lease(organization_id=uuid4(), run_id=uuid4(), fence=1, wake_seq=0)


class Gone:
    """A store that finds no lease any more."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def renew(self, lease: Lease, *, lease_s: float) -> Renewed | None:
        self.asked.set()
        return None


class Hanging:
    """A store whose renewals never come back, as those that wait for a connection of a pool that has none."""

    async def renew(self, lease: Lease, *, lease_s: float) -> Renewed | None:
        await asyncio.Event().wait()
        return None


async def test_a_renewal_that_hangs_does_not_outlast_the_lease() -> None:
    stop, segment = SegmentStop(), asyncio.create_task(asyncio.Event().wait())
    store = cast(RunStore, cast(Any, Hanging()))
    timings = Timings(lease_s=0.2, renew_s=0.01)
    async with (
        asyncio.timeout(BOUND_S),
        kept(LEASE, store=store, stop=stop, timings=timings, clock=SystemClock(), segment=segment),
    ):
        await asyncio.wait({segment})
    assert segment.cancelled()
    assert stop.abort is not None
    assert stop.abort.kind == "lease_lost"
    assert stop.leave.abort is not None


async def test_a_lease_that_is_lost_is_told_as_lost_whatever_stopped_the_segment_before() -> None:
    stop, segment = SegmentStop(), asyncio.create_task(asyncio.Event().wait())
    stop.record("slice", "slice")
    store, timings = cast(RunStore, cast(Any, Gone())), Timings(lease_s=5, renew_s=0.01)
    async with (
        asyncio.timeout(BOUND_S),
        kept(LEASE, store=store, stop=stop, timings=timings, clock=SystemClock(), segment=segment),
    ):
        await asyncio.wait({segment})
    assert segment.cancelled()
    assert stop.lost


async def test_a_segment_that_gives_its_lease_back_is_not_stopped_by_a_renewal_that_finds_none() -> None:
    store, sent = Gone(), asyncio.Event()
    stop, segment = SegmentStop(), asyncio.create_task(sent.wait())
    stop.letting_go = True
    async with (
        asyncio.timeout(BOUND_S),
        kept(
            LEASE,
            store=cast(RunStore, cast(Any, store)),
            stop=stop,
            timings=Timings(lease_s=5, renew_s=0.01),
            clock=SystemClock(),
            segment=segment,
        ) as keeper,
    ):
        await store.asked.wait()
        await asyncio.wait({keeper})
        sent.set()
        assert await segment
    assert not stop.lost
    assert stop.abort is None
    assert stop.leave.abort is None
