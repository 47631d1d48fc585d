"""What a job costs is settled once, off every run, from what its provider reported (M1, M3)."""

import asyncio
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import sentry_sdk

from agentic.services.provider_jobs.settling import CannotBeCounted
from core_world import execute
from jobs_stage import CREDIT, JobsStage, body, jobs_stage
from money import set_price


async def settle(s: JobsStage, job_id: UUID) -> bool:
    """One attempt of the durable function."""
    return await s.h.platform.settling.settle(s.h.organization_id, job_id)


@pytest.mark.guarantee("M1", "M3")
async def test_many_settlings_of_one_job_write_one_line_and_close_its_hold_once(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        assert not await settle(s, job.id)  # it has not ended
        await s.post(job.id, body("v-1", job.id, credits_=3))
        settled = await asyncio.gather(*(settle(s, job.id) for _ in range(4)))
        assert sorted(settled) == [False, False, False, True]
        [line] = await s.lines()
        assert (line["kind"], line["provider"], line["item"], line["unit"]) == (
            "job",
            "fullenrich",
            "fullenrich.submit",
            "credit",
        )
        assert (line["quantity"], line["cost"], line["estimated"], line["ok"]) == (3, 3 * CREDIT, False, True)
        assert line["price_row"] is not None
        assert (await s.read(job.id)).usage_id == line["id"]
        assert await s.holds() == [("job", "settled")]


@pytest.mark.guarantee("M1")
async def test_a_job_settles_once_when_its_run_was_cancelled_before_the_callback_came(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        await execute(
            s.h,
            "update agent.runs set state = 'cancelled', finished_at = clock_timestamp() where id = %(id)s",
            id=job.run_id,
        )
        for _ in range(2):
            assert await s.post(job.id, body("v-1", job.id)) == 200
        await s.settle_all()
        await s.settle_all()
        [line] = await s.lines()
        assert (line["root_run_id"], line["cost"]) == (job.run_id, CREDIT)


async def test_a_job_that_found_nothing_costs_nothing_even_without_a_price(database: str) -> None:
    async with jobs_stage(database, priced=False) as s:
        job = await s.job()
        await s.post(job.id, body("v-1", job.id, credits_=0))
        assert await settle(s, job.id)
        assert [line["cost"] for line in await s.lines()] == [Decimal(0)]
        assert await s.holds() == [("job", "settled")]


async def test_an_end_without_a_readable_cost_counts_what_was_held_and_says_so(database: str) -> None:
    async with jobs_stage(database) as s:
        for n, credits_ in enumerate(("1", True, -1, 1.5, None)):
            job = await s.job(held="2.50")
            await s.post(job.id, body(f"v-{n}", job.id, "CANCELED", credits_=credits_))
            assert await settle(s, job.id)
        lines = await s.lines()
        assert {(line["cost"], line["estimated"], line["error"], line["ok"]) for line in lines} == {
            (Decimal("2.50"), True, "no_report", False)
        }
        assert len(lines) == 5


@pytest.mark.guarantee("M1")
async def test_a_cost_that_no_price_covers_stays_unsettled_until_one_does_and_is_reported_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sentry_sdk, "capture_message", lambda message, **_: told.append(message))
    async with jobs_stage(database, priced=False) as s:
        job = await s.job()
        await s.post(job.id, body("v-1", job.id))
        for _ in range(2):
            with pytest.raises(CannotBeCounted):
                await settle(s, job.id)
        await s.h.platform.settling.give_up(s.h.organization_id, job.id)
        await s.h.platform.settling.give_up(s.h.organization_id, job.id)
        assert [str(job.id) in message for message in told] == [True]
        assert (await s.lines(), await s.holds()) == ([], [("job", "held")])
        found = await s.h.platform.jobs.find(s.h.organization_id, which="unsettled", limit=10)
        assert [each.id for each in found] == [job.id]
        assert found[0].settle_failed_at is not None

        await set_price(s.h, "0.05", provider="fullenrich")
        s.h.bus.events.clear()
        await execute(
            s.h,
            "update agent.provider_jobs set nudged_at = clock_timestamp() - interval '2 hours' where id = %(id)s",
            id=job.id,
        )
        assert await s.h.platform.reconciling.sweep() == 1
        assert await s.h.platform.reconciling.sweep() == 0  # asked for just now
        await s.settle_all()
        assert [line["cost"] for line in await s.lines()] == [CREDIT]
        await s.h.platform.settling.give_up(s.h.organization_id, job.id)
        assert len(told) == 1
        assert await s.h.platform.jobs.find(s.h.organization_id, which="unsettled", limit=10) == []


async def test_a_job_whose_submit_was_not_metered_settles_for_nothing_and_says_that_nobody_reported(
    database: str,
) -> None:
    async with jobs_stage(database) as s:
        job = await s.job(held=None)
        await s.post(job.id, body("v-1", job.id, credits_=None))
        assert await settle(s, job.id)
        assert [(line["cost"], line["error"]) for line in await s.lines()] == [(Decimal(0), "no_report")]


@pytest.mark.guarantee("T1")
async def test_another_organization_settles_and_finds_nothing(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        await s.post(job.id, body("v-1", job.id))
        foreign = UUID(int=8)
        assert not await s.h.platform.settling.settle(foreign, job.id)
        assert await s.h.platform.jobs.find(foreign, which="all", limit=10) == []
        assert await s.lines() == []
