"""kill -9 at every point of a provider's job: one batch at most, one end, one line of usage, and nothing held for ever (J3, M1, W1).

What each death leaves is ``docs/crash-matrix-jobs.md``; ``UPDATE_CRASH_MATRIX=1`` writes it anew.
"""

import asyncio
import base64
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agentic.local.crash_points import JOB_SENTENCES, JobCrashPoint
from agentic.local.providers.stand_in import Answer, Received
from agentic.services.provider_jobs.models import JobState, ProviderJob
from agentic.services.provider_jobs.operating import JobDesk
from agentic.testing import KILLED
from core_world import execute
from jobs_stage import CREDIT, JobsStage, jobs_stage
from time_passes import time_passes
from warm_processes import Warm

pytestmark = pytest.mark.timeout(120)  # a process that dies and two that go on

PAGE = Path(__file__).parents[3] / "docs" / "crash-matrix-jobs.md"
LIMIT_S = 50
At = JobCrashPoint


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a death leaves.

    Attributes:
        batches: at the provider.
        ended: by whom the job ends.
        paid: credits that are paid in the end, by one line.
    """

    batches: int
    ended: str
    paid: int


CALLBACK, AGAIN, OPERATOR = "its callback", "the delivery that comes again", "an operator"
EXPECTED = {
    At.BEFORE_RESERVE: Left(batches=1, ended=CALLBACK, paid=1),
    At.AFTER_RESERVE: Left(batches=0, ended=OPERATOR, paid=0),
    At.BEFORE_SUBMIT: Left(batches=0, ended=OPERATOR, paid=0),
    At.SUBMIT_ACCEPTED: Left(batches=1, ended=CALLBACK, paid=1),
    At.BEFORE_BIND: Left(batches=1, ended=CALLBACK, paid=1),
    At.AFTER_BIND: Left(batches=1, ended=CALLBACK, paid=1),
    At.BEFORE_INTAKE: Left(batches=1, ended=AGAIN, paid=1),
    At.INSIDE_INTAKE: Left(batches=1, ended=AGAIN, paid=1),
    At.AFTER_INTAKE: Left(batches=1, ended=CALLBACK, paid=1),
    At.BEFORE_SETTLE: Left(batches=1, ended=CALLBACK, paid=1),
    At.INSIDE_SETTLE: Left(batches=1, ended=CALLBACK, paid=1),
    At.AFTER_SETTLE: Left(batches=1, ended=CALLBACK, paid=1),
}
SUBMITTING = [at for at in EXPECTED if list(At).index(at) <= list(At).index(At.AFTER_BIND)]
TAKING_IN = [At.BEFORE_INTAKE, At.INSIDE_INTAKE, At.AFTER_INTAKE]
SETTLING = [At.BEFORE_SETTLE, At.INSIDE_SETTLE, At.AFTER_SETTLE]


def page() -> str:
    """The table for people."""
    lines = [
        "# Crash matrix of jobs",
        "",
        "A process submits a provider's job, takes its signed report or settles its cost, and is killed with SIGKILL at each point. Others go",
        "on from the rows: the next worker of the run, the provider that delivers again, the sweep. Written by the acceptance tests.",
        "",
        "| point | when the process died | batches at the provider | the job is ended by | credits paid |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{point}` | {JOB_SENTENCES[point]} | {left.batches} | {left.ended} | {left.paid} |"
        for point, left in EXPECTED.items()
    ]
    return "\n".join([*lines, ""])


def test_the_page_says_what_the_tests_expect_of_every_point() -> None:
    assert list(EXPECTED) == list(JobCrashPoint) == list(JOB_SENTENCES)
    if os.environ.get("UPDATE_CRASH_MATRIX"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "the page is stale: run this test with UPDATE_CRASH_MATRIX=1"


async def dies(s: JobsStage, dying: Warm, point: JobCrashPoint, *arguments: str) -> None:
    """Run a process until its death at the point."""
    environment = {**os.environ, "AGENTIC_CHILD_DATABASE_URL": s.h.database_url, "CRASH_VENDOR": s.vendor_url}
    with dying.started("crash_jobs:run", str(point), *arguments, environment=environment) as process:
        if point is At.SUBMIT_ACCEPTED:
            _kill_once_it_was_taken(s, process.pid)
        assert await asyncio.to_thread(process.wait, LIMIT_S) == KILLED


def _kill_once_it_was_taken(s: JobsStage, pid: int) -> None:
    answer = s.vendor.answer

    def kill(request: Received) -> Answer:
        taken = answer(request)
        os.kill(pid, signal.SIGKILL)
        return taken

    s.vendor.answer = kill  # type: ignore[method-assign]


async def the_job(s: JobsStage) -> ProviderJob:
    [job] = await s.h.platform.jobs.find(s.h.organization_id, which="all", limit=10)
    return await s.read(job.id)


def report(s: JobsStage) -> tuple[bytes, dict[str, str]]:
    """The report of the one batch, signed."""
    body = s.vendor.finish(s.vendor.last, found={"a": "ida@nordlys.example"})
    return body, s.vendor.signed(body)


async def ends_well(s: JobsStage, left: Left, run_id: UUID) -> None:
    """The sweep does what is left; then there is one job, paid once, and nothing is held."""
    h = s.h
    await execute(h, "update agent.outbox set next_attempt_at = clock_timestamp() where state = 'pending'")
    await h.platform.outbox.sweep()
    await h.platform.reconciling.sweep()
    for _ in range(2):
        await s.settle_all()
        await execute(h, "update agent.provider_jobs set nudged_at = clock_timestamp() - interval '2 hours'")
        await execute(h, "update agent.outbox set next_attempt_at = clock_timestamp() where state = 'pending'")
        await h.platform.reconciling.sweep()
    job, lines = await the_job(s), await s.lines()
    assert len(s.vendor.batches) == left.batches
    assert job.state.terminal
    assert [(line["id"], line["cost"]) for line in lines] == [(job.usage_id, left.paid * CREDIT)]
    assert "held" not in {state for _, state in await s.holds()}
    assert (await h.settle(run_id)).state == "succeeded"


async def submitted(s: JobsStage) -> tuple[UUID, ProviderJob]:
    """A job that was submitted by a worker that lives."""
    run_id, _ = await s.submitted()
    return run_id, await the_job(s)


@pytest.mark.guarantee("J1", "J3", "M1")
@pytest.mark.parametrize("point", SUBMITTING)
async def test_a_worker_killed_while_it_submits_leaves_one_job_and_one_batch_at_most(
    database: str, dying: Warm, point: JobCrashPoint
) -> None:
    left = EXPECTED[point]
    async with jobs_stage(database, window_s=0.001) as s:
        run_id = await s.h.start()
        await s.h.settle(run_id)
        await s.h.decide(run_id)
        await dies(s, dying, point, "advance", str(s.h.organization_id), str(run_id))
        await time_passes(s.h.platform.database, run_id)
        assert (await s.h.settle(run_id)).state == "succeeded"
        assert (await s.told(run_id))["job_id"] == str((await the_job(s)).id)
        assert await s.h.uncertain(run_id) == []
        if left.ended == OPERATOR:
            assert s.vendor.batches == {}
            await s.h.platform.reconciling.sweep()
            job = await the_job(s)
            assert job.unknown_at is not None
            assert ("job", "held") in await s.holds()
            desk = JobDesk(s.h.platform.jobs, s.h.platform.outbox.flush)
            await desk.not_taken(
                s.h.organization_id, job.id, user_id=s.h.user_id, evidence="their dashboard has no such batch"
            )
        else:
            body, headers = report(s)
            assert await s.post((await the_job(s)).id, body, headers=headers) == 200
        await ends_well(s, left, run_id)


@pytest.mark.guarantee("W1", "W2", "M1", "J3")
@pytest.mark.parametrize("point", TAKING_IN)
async def test_a_server_killed_while_it_takes_a_report_loses_nothing_and_ends_the_job_once(
    database: str, dying: Warm, point: JobCrashPoint
) -> None:
    async with jobs_stage(database, window_s=0.001) as s:
        run_id, job = await submitted(s)
        body, headers = report(s)
        packed = base64.b64encode(body).decode()
        await dies(s, dying, point, "receive", str(job.id), packed, json.dumps(headers))
        stored = point is At.AFTER_INTAKE
        assert (await s.read(job.id)).state is (JobState.COMPLETED if stored else JobState.SUBMITTED)
        assert await s.post(job.id, body, headers=headers) == 200  # the provider heard nothing, and delivers again
        assert await s.drops() == ({"duplicate": 1} if stored else {})
        await ends_well(s, EXPECTED[point], run_id)


@pytest.mark.guarantee("M1", "J3")
@pytest.mark.parametrize("point", SETTLING)
async def test_a_worker_killed_while_it_settles_leaves_a_cost_that_is_written_once(
    database: str, dying: Warm, point: JobCrashPoint
) -> None:
    async with jobs_stage(database, window_s=0.001) as s:
        run_id, job = await submitted(s)
        body, headers = report(s)
        assert await s.post(job.id, body, headers=headers) == 200
        s.h.bus.events.clear()  # whoever took the event is the process that dies
        await dies(s, dying, point, "settle", str(s.h.organization_id), str(job.id))
        written: list[dict[str, Any]] = await s.lines()
        assert len(written) == int(point is At.AFTER_SETTLE)
        await execute(
            s.h,
            "update agent.provider_jobs set nudged_at = clock_timestamp() - interval '2 hours' where usage_id is null",
        )
        await ends_well(s, EXPECTED[point], run_id)
