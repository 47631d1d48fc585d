"""A provider that says nothing is asked; a job nobody knows of goes to an operator, with its money held (W1, M1; field case 33)."""

import asyncio
from uuid import UUID, uuid4

import pytest

from agentic.contract.principal import Role
from agentic.local.providers.fullenrich import Batch
from agentic.local.providers.stand_in import Answer, Lost
from agentic.services.provider_jobs.models import JobState, NewJob
from agentic.services.provider_jobs.reconciling import NotAnswered
from core_world import execute
from jobs_stage import CREDIT, JobsStage, body, jobs_stage

WAITS_S = 1800


async def silent_for(s: JobsStage, job: NewJob, seconds: float = WAITS_S + 60) -> None:
    """Move the submit back; the row's own rule forbids that, for everybody else."""
    await execute(s.h, "alter table agent.provider_jobs disable trigger provider_jobs_moves")
    await execute(
        s.h,
        "update agent.provider_jobs set submitted_at = submitted_at - make_interval(secs => %(s)s), "
        "next_ask_at = next_ask_at - make_interval(secs => %(s)s) where id = %(id)s",
        s=seconds,
        id=job.id,
    )
    await execute(s.h, "alter table agent.provider_jobs enable trigger provider_jobs_moves")


def batch_of(s: JobsStage, job: NewJob) -> Batch:
    """The vendor's side of a job."""
    row = {"first_name": "Ida", "last_name": "Holm", "domain": "nordlys.example", "custom": {"ref": "a"}}
    return s.vendor.take({"name": f"agentic:{job.id}", "webhook_url": None, "data": [row]})


async def submitted(s: JobsStage) -> tuple[NewJob, Batch]:
    """A job that the provider has and does not report."""
    job = await s.job()
    batch = batch_of(s, job)
    await s.h.platform.jobs.bind(job.organization_id, job.id, batch.id)
    return job, batch


@pytest.mark.guarantee("W1", "M1")
async def test_a_silent_job_is_asked_about_after_its_window_and_a_late_callback_pays_nothing_twice(
    database: str,
) -> None:
    async with jobs_stage(database) as s:
        job, batch = await submitted(s)
        assert await s.h.platform.reconciling.sweep() == 0
        assert s.vendor.requests == []  # its window is not over
        await silent_for(s, job)
        assert await s.h.platform.reconciling.sweep() == 0
        assert await s.h.platform.reconciling.sweep() == 0
        assert len(s.vendor.requests) == 1  # not ready; asked again after a while, not at every sweep
        await silent_for(s, job)
        s.vendor.finish(batch, found={"a": "ida@nordlys.example"})
        assert await s.h.platform.reconciling.sweep() == 1
        assert (await s.read(job.id)).state is JobState.COMPLETED
        await s.settle_all()
        assert await s.post(job.id, batch.body()) == 200
        assert await s.drops() == {"duplicate": 1}
        await s.settle_all()
        assert [line["cost"] for line in await s.lines()] == [CREDIT]
        assert await s.holds() == [("job", "settled")]


@pytest.mark.guarantee("M1", "W2")
async def test_an_answer_and_callbacks_of_the_same_moment_end_the_job_once_at_the_first_one_s_cost(
    database: str,
) -> None:
    """Field case 17: what comes second is shown, and charged to nobody."""
    async with jobs_stage(database) as s:
        for _ in range(5):
            job, batch = await submitted(s)
            s.vendor.finish(batch, found={"a": "ida@nordlys.example"})
            estimate = body(batch.id, job.id, credits_=2)
            await silent_for(s, job)
            before = len(await s.lines())
            done = await asyncio.gather(
                s.post(job.id, estimate),
                s.h.platform.reconciling.sweep(),
                s.post(job.id, estimate),
                s.post(job.id, batch.body()),
            )
            assert (done[0], done[2], done[3]) == (200, 200, 200)
            await s.settle_all()
            row, lines = await s.read(job.id), (await s.lines())[before:]
            assert (row.state, len(lines), lines[0]["id"]) == (JobState.COMPLETED, 1, row.usage_id)
            assert row.cost is not None
            assert lines[0]["cost"] == int(row.cost["quantity"]) * CREDIT
            assert row.late_report is not None
            assert {row.cost["quantity"], row.late_report["cost"]["quantity"]} == {"1", "2"}


async def test_an_answer_that_credits_ran_out_is_a_result_with_its_cost(database: str) -> None:
    async with jobs_stage(database) as s:
        job, batch = await submitted(s)
        s.vendor.finish(batch, "CREDITS_INSUFFICIENT", found={"a": "ida@nordlys.example"})
        await silent_for(s, job)
        assert await s.h.platform.reconciling.sweep() == 1
        row = await s.read(job.id)
        assert (row.state, row.cost) == (JobState.FAILED, {"quantity": "1", "unit": "credit"})


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404, json={"code": "error.enrichment.not_found", "message": ""}),
        Answer(status=400, json={"code": "error.enrichment.in_progress", "message": ""}),
        Answer(status=401, json={"code": "error.api.key", "message": ""}),
        Answer(status=429, json={"code": "error.rate.limit", "message": ""}),
        Answer(status=500, body=b"<html>"),
        Answer(status=200, body=b"<html>"),
        Answer(status=200, json={"id": "another", "name": "x", "status": "FINISHED", "data": []}),
        Lost(),
    ],
    ids=["gone", "not ready", "key", "busy", "down", "no json", "of another", "lost"],
)
async def test_an_answer_that_says_nothing_of_the_end_moves_nothing_and_holds_up_no_other_job(
    database: str, answer: Answer | Lost
) -> None:
    async with jobs_stage(database) as s:
        job, _ = await submitted(s)
        await silent_for(s, job, WAITS_S + 600)
        other, batch = await submitted(s)
        await silent_for(s, other)
        s.vendor.finish(batch)
        s.vendor.then(answer)
        assert await s.h.platform.reconciling.sweep() == 1
        assert (await s.read(job.id)).state is JobState.SUBMITTED
        assert (await s.read(other.id)).state is JobState.COMPLETED


@pytest.mark.guarantee("M1", "D4")
async def test_a_job_without_the_provider_s_id_goes_to_an_operator_and_keeps_its_money(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        await silent_for(s, job)
        assert await s.h.platform.reconciling.sweep() == 1
        assert await s.h.platform.reconciling.sweep() == 0
        [found] = await s.h.platform.jobs.find(s.h.organization_id, which="unknown", limit=10)
        assert (found.id, found.state, found.unknown_at is not None) == (job.id, JobState.SUBMITTED, True)
        assert (s.vendor.requests, await s.holds()) == ([], [("job", "held")])
        # a callback still says what became of it
        assert await s.post(job.id, body("v-1", job.id)) == 200
        assert await s.h.platform.jobs.find(s.h.organization_id, which="unknown", limit=10) == []
        await s.settle_all()
        assert await s.holds() == [("job", "settled")]


async def test_an_operator_who_found_that_it_was_never_taken_ends_it_at_no_cost(database: str) -> None:
    async with jobs_stage(database, priced=False) as s:
        job = await s.job()
        jobs, org = s.h.platform.jobs, s.h.organization_id
        assert (
            await jobs.resolve_refused(org, job.id, user_id=s.h.user_id, evidence="none there") is None
        )  # not yet unknown
        await silent_for(s, job)
        await s.h.platform.reconciling.sweep()
        member = uuid4()
        await s.h.platform.approval_store.put_member(org, member, Role.MEMBER)
        for stranger in (member, uuid4()):
            assert await jobs.resolve_refused(org, job.id, user_id=stranger, evidence="none there") is None
        assert await jobs.resolve_refused(UUID(int=8), job.id, user_id=s.h.user_id, evidence="none there") is None
        event = await jobs.resolve_refused(org, job.id, user_id=s.h.user_id, evidence="none there")
        assert event is not None
        await s.h.platform.outbox.flush([event])
        await s.settle_all()
        assert [line["cost"] for line in await s.lines()] == [0]
        assert (await s.holds(), (await s.read(job.id)).state) == ([("job", "settled")], JobState.FAILED)


async def test_a_person_who_asks_hears_why_the_provider_could_not_be_asked(database: str) -> None:
    async with jobs_stage(database) as s:
        job, batch = await submitted(s)
        s.vendor.finish(batch)
        s.vendor.then(Answer(status=401), Lost())
        for why in ("the key is not accepted", "may have taken effect"):
            with pytest.raises(NotAnswered, match=why):
                await s.h.platform.reconciling.ask_about(job.organization_id, job.id)
            assert (await s.read(job.id)).state is JobState.SUBMITTED
        assert await s.h.platform.reconciling.ask_about(job.organization_id, job.id)


async def test_an_operator_who_found_the_provider_s_id_has_the_provider_asked(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()
        batch = batch_of(s, job)
        s.vendor.finish(batch, found={"a": "ida@nordlys.example"})
        await silent_for(s, job)
        await s.h.platform.reconciling.sweep()
        jobs, org = s.h.platform.jobs, s.h.organization_id
        bound = await jobs.resolve_bound(
            org, job.id, provider_job_id=batch.id, user_id=s.h.user_id, evidence="its dashboard"
        )
        assert bound
        assert await s.h.platform.reconciling.ask_about(org, job.id)
        assert (await s.read(job.id)).state is JobState.COMPLETED


@pytest.mark.guarantee("T1")
async def test_nobody_asks_about_another_organization_s_job(database: str) -> None:
    async with jobs_stage(database) as s:
        job, batch = await submitted(s)
        s.vendor.finish(batch)
        assert not await s.h.platform.reconciling.ask_about(UUID(int=8), job.id)
        assert s.vendor.requests == []
