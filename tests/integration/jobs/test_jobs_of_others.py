"""Every method of the store of jobs that names an organization, found by itself: another one's job is no job (T1)."""

import hashlib
import inspect
import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import AgenticError
from agentic.contract.principal import Role
from agentic.services.provider_jobs.models import JobMove, JobState, ResultMissing
from agentic.storage.job_store import PostgresJobStore
from core_world import rows
from jobs_stage import JobsStage, jobs_stage

BODY = '{"people": []}'
DIGEST = hashlib.sha256(BODY.encode()).hexdigest()
WITHOUT = {
    "become_unknown": "a sweep over all organizations",
    "count_drop": "counts by provider",
    "deliver": "the address of a verified delivery names the job, and its row says whose it is",
    "drops": "counts by provider",
    "nudge_unsettled": "a sweep over all organizations",
    "take_silent": "a sweep over all organizations; for one job it names the organization, tried apart",
}
BY_VALUE = {"reserve", "result_of", "submit", "submitted_by"}
"""Their job or call says its organization: jobs are tried apart, and a call is found by its claim, under the run's own organization."""


def arguments(name: str, organization_id: UUID, job_id: UUID, user_id: UUID) -> dict[str, Any]:
    given = {
        "organization_id": organization_id,
        "job_id": job_id,
        "user_id": user_id,
        "provider_job_id": "v-2",
        "digest": "d" * 64,
        "body": "{}",
        "move": JobMove(state=JobState.RUNNING),
        "note": "seen",
        "evidence": "seen it myself",
        "which": "all",
        "limit": 10,
    }
    return {
        parameter: given[parameter]
        for parameter in inspect.signature(getattr(PostgresJobStore, name)).parameters
        if parameter != "self"
    }


def scoped() -> list[str]:
    found = [name for name, _ in inspect.getmembers(PostgresJobStore, inspect.isfunction) if not name.startswith("_")]
    named = [n for n in found if "organization_id" in inspect.signature(getattr(PostgresJobStore, n)).parameters]
    assert set(found) - set(named) == set(WITHOUT) | BY_VALUE
    return named


async def everything(s: JobsStage) -> list[Any]:
    return [
        await rows(s.h, "select * from agent.provider_jobs order by id"),
        await rows(s.h, "select * from agent.provider_job_results order by 1, 2, 3"),
        await rows(s.h, "select * from agent.usage_reservations order by id"),
        await rows(s.h, "select * from agent.ai_usage_log order by id"),
        await rows(s.h, "select * from agent.outbox order by id"),
    ]


async def outcome(s: JobsStage, name: str, organization_id: UUID, job_id: UUID, user_id: UUID) -> str:
    try:
        answer = await getattr(s.h.platform.jobs, name)(**arguments(name, organization_id, job_id, user_id))
    except AgenticError as refused:
        answer = f"{type(refused).__name__}: {refused}"
    return repr(answer).replace(str(job_id), "JOB")


@pytest.mark.guarantee("T1")
async def test_no_method_reads_or_moves_the_job_of_another_organization(database: str) -> None:
    async with jobs_stage(database) as s:
        job = await s.job()  # no id of the provider's yet, so that there is one to give
        ended = await s.job(vendor_id="v-9")
        await s.h.platform.jobs.move(s.h.organization_id, ended.id, JobMove(state=JobState.COMPLETED, result={"n": 1}))
        stranger, elsewhere = uuid4(), uuid4()
        await s.h.platform.approval_store.put_member(elsewhere, stranger, Role.ADMIN)
        before = await everything(s)
        names = scoped()
        assert {"bind", "read", "settle", "resolve_bound"} <= set(names)
        for name in names:
            for theirs in (job.id, ended.id):
                foreign = await outcome(s, name, elsewhere, theirs, stranger)
                missing = await outcome(s, name, elsewhere, uuid4(), stranger)
                assert foreign == missing, name
        assert await everything(s) == before


@pytest.mark.guarantee("T1")
async def test_a_job_that_is_said_to_be_of_another_organization_is_not_asked_or_submitted(
    database: str,
) -> None:
    async with jobs_stage(database) as s:
        job = await s.job(vendor_id="v-1")
        await s.h.platform.jobs.keep_result(s.h.organization_id, job.id, digest=DIGEST, body=BODY)
        elsewhere = uuid4()
        before = await everything(s)
        asking = s.h.platform.jobs.take_silent("fullenrich", window_s=0, again_s=1, limit=5, only=(elsewhere, job.id))
        assert await asking == []
        kept = replace(await s.read(job.id), result_digest=DIGEST)
        assert await s.h.platform.jobs.result_of(kept) == json.loads(BODY)
        with pytest.raises(ResultMissing):
            await s.h.platform.jobs.result_of(replace(kept, organization_id=elsewhere))
        with pytest.raises(AgenticError, match="does not exist in this organization"):
            await s.h.platform.jobs.submit(replace(job, organization_id=elsewhere))
        assert await everything(s) == before
