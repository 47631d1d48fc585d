"""Deliveries of one job in any order, each any number of times: one transition, one line, the same end (W2, M1; field cases 16, 17, 33)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentic.api.webhooks import MAX_BODY_BYTES
from agentic.services.provider_jobs.models import JobState, NewJob
from core_world import rows
from jobs_stage import CREDIT, JobsStage, body, jobs_stage

Send = Callable[[JobsStage, NewJob, str], Awaitable[int]]


@dataclass(frozen=True)
class Kind:
    """A delivery, what its sender is told, and how it would end the job."""

    send: Send
    status: int
    ends: tuple[JobState, int] | None = None


def report(status: str, credits_: int = 1) -> Send:
    async def send(s: JobsStage, job: NewJob, vendor: str) -> int:
        return await s.post(job.id, body(vendor, job.id, status, credits_=credits_))

    return send


async def forged(s: JobsStage, job: NewJob, vendor: str) -> int:
    return await s.post(job.id, body(vendor, job.id, "CANCELED"), key="somebody-else")


async def oversized(s: JobsStage, job: NewJob, vendor: str) -> int:
    return await s.post(job.id, body(vendor, job.id) + b" " * MAX_BODY_BYTES)


async def wrong_name(s: JobsStage, job: NewJob, vendor: str) -> int:
    return await s.post(job.id, body(f"{vendor}-other", uuid4(), "CANCELED"))


async def wrong_job(s: JobsStage, job: NewJob, vendor: str) -> int:
    return await s.post(uuid4(), body(vendor, job.id, "CANCELED"))


async def replayed_elsewhere(s: JobsStage, job: NewJob, vendor: str) -> int:
    other = await s.job(held=None)
    status = await s.post(other.id, body(vendor, job.id))
    assert (await s.read(other.id)).state is JobState.SUBMITTED
    return status


async def settles(s: JobsStage, job: NewJob, _vendor: str) -> int:
    await s.settle_all()
    return 200


async def bound_by_the_submit(s: JobsStage, job: NewJob, vendor: str) -> int:
    await s.h.platform.jobs.bind(job.organization_id, job.id, vendor)
    return 200


async def swept(s: JobsStage, _job: NewJob, _vendor: str) -> int:
    await s.h.platform.reconciling.sweep()
    return 200


KINDS = {
    "finished": Kind(report("FINISHED"), 200, (JobState.COMPLETED, 1)),
    "corrected": Kind(report("FINISHED", 2), 200, (JobState.COMPLETED, 2)),
    "failed": Kind(report("CREDITS_INSUFFICIENT", 1), 200, (JobState.FAILED, 1)),
    "cancelled": Kind(report("CANCELED", 0), 200, (JobState.CANCELLED, 0)),
    "progress": Kind(report("IN_PROGRESS", 0), 200),
    "forged": Kind(forged, 401),
    "oversized": Kind(oversized, 413),
    "wrong name": Kind(wrong_name, 200),
    "wrong job": Kind(wrong_job, 200),
    "replayed elsewhere": Kind(replayed_elsewhere, 200),
    "settles": Kind(settles, 200),
    "bound": Kind(bound_by_the_submit, 200),
    "swept": Kind(swept, 200),
}


@pytest.mark.guarantee("W1", "W2", "M1", "T3")
@pytest.mark.timeout(120)
async def test_whatever_comes_in_whatever_order_the_first_end_stays_and_is_paid_once(database: str) -> None:
    async with jobs_stage(database) as s:
        drawn: list[list[str]] = []

        @settings(
            max_examples=40,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=7))
        def draw(order: list[str]) -> None:
            drawn.append(order)

        draw()
        for order in [
            *drawn,
            ["finished", "finished", "finished", "progress", "failed"],
            ["progress", "corrected", "finished"],
        ]:
            await _one_job(s, order)


async def _one_job(s: JobsStage, order: list[str]) -> None:
    job, vendor = await s.job(), f"v-{uuid4()}"
    before = {line["id"] for line in await s.lines()}
    s.h.bus.events.clear()
    for name in order:
        assert await KINDS[name].send(s, job, vendor) == KINDS[name].status, (order, name)
    await s.settle_all()
    await s.settle_all()

    ends = [kind.ends for kind in map(KINDS.__getitem__, order) if kind.ends is not None]
    row = await s.read(job.id)
    lines = [line for line in await s.lines() if line["id"] not in before]
    events = await rows(s.h, "select id from agent.outbox where data ->> 'job_id' = %(id)s", id=str(job.id))
    held = await rows(s.h, "select state from agent.usage_reservations where owner_ref = %(id)s", id=str(job.id))
    if not ends:
        assert not row.state.terminal, order
        assert (lines, events, [hold["state"] for hold in held]) == ([], [], ["held"]), order
        return
    state, credits_ = ends[0]
    assert (row.state, len(lines), len(events)) == (state, 1, 1), order
    assert (lines[0]["cost"], row.usage_id) == (credits_ * CREDIT, lines[0]["id"]), order
    assert [hold["state"] for hold in held] == ["settled"], order
    others = [end for end in ends[1:] if end != ends[0]]
    assert (row.late_report is None) is (not others), order
    if others and row.late_report is not None:
        assert (row.late_report["state"], row.late_report["cost"]["quantity"]) == (
            str(others[-1][0]),
            str(others[-1][1]),
        )


async def test_deliveries_at_the_same_time_end_the_job_once(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        sent = [body("v-1", job.id, status) for status in ("FINISHED", "CANCELED", "IN_PROGRESS", "FINISHED")] * 3
        assert set(await asyncio.gather(*(s.post(job.id, each) for each in sent))) == {200}
        assert len(await rows(s.h, "select from agent.outbox")) == 1
        await s.settle_all()
        assert len(await s.lines()) == 1
