"""An agent that collects a job parks until the job has ended: one park a job, woken by the callback, its time, or a person (W1, W3)."""

import json
from collections.abc import Sequence
from uuid import UUID

import pytest

from agentic.runtime.agent.script import SeenMessage, Turn
from agentic.services.provider_jobs.models import JobState
from agentic.testing import Call, Calls, Say
from core_world import execute, rows
from jobs_stage import SUBMIT, JobsStage, body, jobs_stage


def collects(jobs: list[UUID]) -> list[Turn]:
    """Collect a job twice, then say so."""

    def once(_seen: object) -> Calls:
        return Calls([Call("fullenrich.collect", {"job_id": str(jobs[0])})])

    return [once, once, Say("Done.")]


async def parked_on(s: JobsStage, run_id: UUID) -> tuple[str, str | None]:
    """State and what the run is parked on."""
    run = (await s.h.tree(run_id)).run
    return run["state"], run["parked_on"]


@pytest.mark.guarantee("W1", "W3")
async def test_a_collect_of_a_running_job_parks_the_run_until_the_callback_comes(database: str) -> None:
    jobs: list[UUID] = []
    async with jobs_stage(database, script=collects(jobs)) as s:
        job = await s.job(vendor_id="v-1")
        jobs.append(job.id)
        run_id = await s.h.start()
        await s.h.settle(run_id)
        assert await parked_on(s, run_id) == ("parked", "provider_job")
        [leases] = await rows(s.h, "select lease_expires_at from agent.runs where id = %(id)s", id=run_id)
        assert leases["lease_expires_at"] is None
        assert await s.h.advance(run_id) == "idle"
        assert await s.post(job.id, body("v-1", job.id, "IN_PROGRESS", credits_=0)) == 200
        assert await s.h.advance(run_id) == "idle"

        s.h.bus.events.clear()
        assert await s.post(job.id, body("v-1", job.id)) == 200
        assert [event.run_id for event in s.h.bus.events if event.job_id is None] == [run_id]
        settled = await s.h.settle(run_id)
        assert (settled.state, settled.answer) == ("succeeded", "Done.")
        assert [(await s.told(run_id, n))["state"] for n in range(2)] == ["completed", "completed"]
        assert len([text for role, text in await s.h.messages(run_id) if role == "tool"]) == 2


@pytest.mark.guarantee("W2")
async def test_a_job_that_ended_before_the_collect_parks_nobody(database: str) -> None:
    jobs: list[UUID] = []
    async with jobs_stage(database, script=collects(jobs)) as s:
        job = await s.job(vendor_id="v-1")
        jobs.append(job.id)
        assert await s.post(job.id, body("v-1", job.id)) == 200
        run_id = await s.h.start()
        assert (await s.h.settle(run_id)).state == "succeeded"
        assert (await s.read(job.id)).parked_at is None


@pytest.mark.guarantee("W2")
async def test_an_end_between_the_look_and_the_park_leaves_a_nudge(database: str) -> None:
    """The callback lands after the tool has read the row and before the run has parked: nothing waits for the sweep."""
    jobs: list[UUID] = []
    async with jobs_stage(database, script=collects(jobs)) as s:
        job = await s.job(vendor_id="v-1")
        jobs.append(job.id)
        store = s.h.platform.run_store
        parks = store.park_on_job

        async def late(*args: object, **given: object) -> object:
            assert await s.post(job.id, body("v-1", job.id)) == 200
            s.h.bus.events.clear()
            return await parks(*args, **given)  # type: ignore[arg-type]

        store.park_on_job = late  # type: ignore[method-assign, assignment]
        run_id = await s.h.start()
        assert await s.h.advance(run_id) == "parked"
        assert [event.run_id for event in s.h.bus.events] == [run_id]
        assert (await s.h.settle(run_id)).state == "succeeded"


@pytest.mark.guarantee("W4")
async def test_a_wait_whose_time_is_over_answers_running_and_the_job_is_not_waited_for_again(database: str) -> None:
    jobs: list[UUID] = []
    async with jobs_stage(database, script=collects(jobs)) as s:
        job = await s.job(vendor_id="v-1")
        jobs.append(job.id)
        run_id = await s.h.start()
        await s.h.settle(run_id)
        [wait] = await rows(
            s.h,
            "select extract(epoch from over_at - clock_timestamp())::float as left_s from agent.run_waits where run_id = %(id)s",
            id=run_id,
        )
        assert 2900 < wait["left_s"] <= 3000  # the window, and time to be asked twice
        await execute(s.h, "update agent.run_waits set over_at = clock_timestamp() where run_id = %(id)s", id=run_id)
        assert (await s.h.settle(run_id)).state == "succeeded"
        for n in range(2):
            told = await s.told(run_id, n)
            assert (told["state"], told["accepted"], told["results"]) == ("running", True, [])
        assert (await s.read(job.id)).state is JobState.SUBMITTED


@pytest.mark.guarantee("W4")
@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_a_parked_run_ends_when_it_is_cancelled_or_overdue(database: str, how: str) -> None:
    jobs: list[UUID] = []
    async with jobs_stage(database, script=collects(jobs)) as s:
        job = await s.job(vendor_id="v-1")
        jobs.append(job.id)
        run_id = await s.h.start()
        await s.h.settle(run_id)
        if how == "cancelled":
            await s.h.platform.runs.cancel(s.h.organization_id, run_id, user_id=s.h.user_id)
        else:
            await execute(s.h, "update agent.runs set deadline_at = clock_timestamp() where id = %(id)s", id=run_id)
        settled = await s.h.settle(run_id)
        assert (settled.state, settled.error_code) in {("cancelled", None), ("failed", "deadline")}
        assert await s.post(job.id, body("v-1", job.id)) == 200
        await s.settle_all()
        assert len(await s.lines()) == 1
        assert (await s.h.tree(run_id)).run["state"] == settled.state


@pytest.mark.guarantee("W1", "M1")
async def test_one_run_submits_parks_is_woken_and_collects(database: str) -> None:
    def collect(seen: Sequence[SeenMessage]) -> Calls:
        answered = json.loads(seen[-1].text.splitlines()[0])
        return Calls([Call("fullenrich.collect", {"job_id": answered["external"]["data"]["job_id"]})])

    async with jobs_stage(database, script=[SUBMIT, collect, Say("Done.")]) as s:
        run_id, told = await s.submitted()
        assert await parked_on(s, run_id) == ("parked", "provider_job")
        s.vendor.finish(s.vendor.last, found={"a": "ida@nordlys.example"})
        assert await s.deliver(s.vendor.last) == 200
        assert (await s.h.settle(run_id)).state == "succeeded"
        found = await s.told(run_id, 1)
        assert (found["job_id"], found["state"]) == (told["job_id"], "completed")
        assert [line["email"] for line in found["results"]] == ["ida@nordlys.example", None]
        await s.settle_all()
        assert len(await s.lines()) == 1
