"""A provider's job is one row: it goes forward only, is bound once, and is nobody else's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import permutations
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from agentic.contract.errors import Conflict, NotFound
from agentic.contract.events import EventName
from agentic.services.provider_jobs.models import JobMove, JobState, NewJob
from agentic.storage.database import Database
from agentic.storage.job_store import PostgresJobStore
from agentic.storage.outbox_store import PostgresOutboxStore
from agentic.storage.pool import open_pool

LEGAL = {
    (JobState.SUBMITTED, JobState.RUNNING),
    *((before, after) for before in (JobState.SUBMITTED, JobState.RUNNING) for after in JobState if after.terminal),
}
ORGANIZATION = UUID(int=7)


@asynccontextmanager
async def jobs(url: str) -> AsyncIterator[tuple[PostgresJobStore, Database, UUID]]:
    """The store, the database, and a run that submits."""
    async with open_pool(url, max_size=4) as pool:
        database = Database(pool)
        run = uuid4()
        await database.count(
            "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition) "
            "values (%(id)s, %(organization)s, 'k', 'd', %(id)s, 'a', '{}')",
            {"id": run, "organization": ORGANIZATION},
        )
        yield PostgresJobStore(database), database, run


def new(run: UUID, **fields: Any) -> NewJob:
    """A job of the run."""
    return NewJob(**{"id": uuid4(), "organization_id": ORGANIZATION, "run_id": run, "provider": "sift", **fields})


async def state(store: PostgresJobStore, job: NewJob) -> JobState:
    """Where the job stands."""
    found = await store.read(ORGANIZATION, job.id)
    assert found is not None
    return found.state


@pytest.mark.guarantee("J1")
async def test_of_many_submits_of_one_job_exactly_one_may_call_the_provider(database: str) -> None:
    async with jobs(database) as (store, _, run):
        job = new(run, contact_refs=["a", "b"])
        assert [await store.submit(job) for _ in range(3)] == [True, False, False]
        assert await state(store, job) is JobState.SUBMITTED


@pytest.mark.guarantee("W2")
async def test_a_job_goes_forward_only_whatever_comes_in_whatever_order(database: str) -> None:
    async with jobs(database) as (store, db, run):
        for before, after in permutations(JobState, 2):
            job = new(run)
            await store.submit(job)
            if before is not JobState.SUBMITTED:
                await store.move(ORGANIZATION, job.id, JobMove(state=before))
            event = await store.move(ORGANIZATION, job.id, JobMove(state=after))
            legal = (before, after) in LEGAL
            assert await state(store, job) is (after if legal else before)
            assert (event is not None) is (legal and after.terminal)
            if not legal:
                with pytest.raises(psycopg.errors.RestrictViolation):
                    await db.count(
                        "update agent.provider_jobs set state = %(state)s, terminal_at = %(at)s::timestamptz where id = %(id)s",
                        {"state": str(after), "id": job.id, "at": "2030-01-01" if after.terminal else None},
                    )


@pytest.mark.guarantee("W1")
async def test_the_end_of_a_job_and_its_event_are_one_commit_and_progress_leaves_none(database: str) -> None:
    async with jobs(database) as (store, db, run):
        job = new(run)
        await store.submit(job)
        assert await store.move(ORGANIZATION, job.id, JobMove(state=JobState.RUNNING)) is None
        event = await store.move(ORGANIZATION, job.id, JobMove(state=JobState.COMPLETED, result={"n": 1}))
        assert event is not None
        (taken,) = await PostgresOutboxStore(db).take([], due=True, age_s=0, again_s=30, limit=10)
        assert (taken.id, taken.name) == (event, EventName.PROVIDER_JOB_COMPLETED)
        assert taken.data()["job_id"] == str(job.id)
        assert await store.move(ORGANIZATION, job.id, JobMove(state=JobState.FAILED)) is None
        found = await store.read(ORGANIZATION, job.id)
        assert found is not None
        assert (found.state, found.result) == (JobState.COMPLETED, {"n": 1})


async def test_what_is_known_of_a_job_is_set_once_and_its_end_stays(database: str) -> None:
    async with jobs(database) as (store, db, run):
        job, other = new(run), new(run)
        await store.submit(job)
        await store.submit(other)
        assert await store.bind(ORGANIZATION, job.id, "v-1")
        assert not await store.bind(ORGANIZATION, job.id, "v-2")
        with pytest.raises(Conflict):
            await store.bind(ORGANIZATION, other.id, "v-1")
        await store.move(ORGANIZATION, job.id, JobMove(state=JobState.COMPLETED, cost={"credits": 2}))
        await db.count(
            "update agent.provider_jobs set usage_id = %(u)s where id = %(id)s", {"u": uuid4(), "id": job.id}
        )
        for change in ("cost = '{}'", "result = '1'", "usage_id = null", "provider_job_id = 'v-3'", "provider = 'x'"):
            with pytest.raises(psycopg.errors.RestrictViolation):
                await db.count(f"update agent.provider_jobs set {change} where id = %(id)s", {"id": job.id})


@pytest.mark.guarantee("T1")
async def test_another_organizations_job_looks_like_a_missing_one(database: str) -> None:
    async with jobs(database) as (store, db, run):
        job, foreign = new(run), UUID(int=8)
        await store.submit(job)
        assert await store.read(foreign, job.id) is None
        assert not await store.bind(foreign, job.id, "v-1")
        assert await store.move(foreign, job.id, JobMove(state=JobState.COMPLETED)) is None
        await store.keep_result(foreign, job.id, digest="d", body="{}")
        assert await db.all("select from agent.provider_job_results", {}) == []
        with pytest.raises(NotFound):
            await store.submit(new(run, organization_id=foreign))
        assert await state(store, job) is JobState.SUBMITTED


async def test_a_large_result_is_kept_once_under_its_digest_and_never_changed(database: str) -> None:
    async with jobs(database) as (store, db, run):
        job = new(run)
        await store.submit(job)
        await store.keep_result(ORGANIZATION, job.id, digest="d1", body="{}")
        await store.keep_result(ORGANIZATION, job.id, digest="d1", body="other")
        await store.move(ORGANIZATION, job.id, JobMove(state=JobState.COMPLETED, result_digest="d1"))
        assert [row["body"] for row in await db.all("select body from agent.provider_job_results", {})] == ["{}"]
        with pytest.raises(psycopg.errors.RestrictViolation):
            await db.count("update agent.provider_job_results set body = 'x'", {})
        await db.count("delete from agent.provider_jobs", {})
        assert await db.all("select from agent.provider_job_results", {}) == []
