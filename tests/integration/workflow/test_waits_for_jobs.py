"""A function waits for a provider's job: its row decides, read before the wait and after every slice (W2)."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue

from agentic.runtime.workflow import WorkflowContext, tool_step, wait_for_job
from agentic.services.provider_jobs.models import JobMove, JobState, NewJob
from agentic.storage.job_store import PostgresJobStore
from core_world import World
from workflow_flows import flow_app
from workflow_stage import Stage, stage

COMPLETED = JobMove(state=JobState.COMPLETED, result={"found": 1})


async def waits(ctx: WorkflowContext) -> JsonValue:
    """Wait for the job that the event names."""
    await tool_step(ctx, "note", "notes.save", {"text": "a"})
    seen = await wait_for_job(
        ctx, "wait", str(ctx.event.data["job"]), timedelta(seconds=float(str(ctx.event.data["within"])))
    )
    return [str(seen.state), seen.ended]


async def submitted(s: Stage, organization_id: UUID | None = None) -> NewJob:
    """A job of a run of its own."""
    run, organization = uuid4(), organization_id or s.organization_id
    await s.execute(
        "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition) "
        "values (%(id)s, %(organization)s, 'k', 'd', %(id)s, 'a', '{}')",
        id=run,
        organization=organization,
    )
    job = NewJob(id=uuid4(), organization_id=organization, run_id=run, provider="sift")
    await s.platform.jobs.submit(job)
    return job


async def end(s: Stage, job: NewJob) -> None:
    """The job ends, and its event is on its way."""
    event = await s.platform.jobs.move(job.organization_id, job.id, COMPLETED)
    assert event is not None
    await s.platform.outbox.flush([event])


@pytest.mark.guarantee("W2", "W3")
async def test_the_event_of_a_job_that_ends_wakes_the_function_once_however_often_it_comes(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s)
        await s.send("flow", job=str(job.id), within=3600)
        await s.waiting("wait/wait-0")
        assert await s.rows("select from agent.runs where lease_expires_at is not null") == []
        await end(s, job)
        sent = list(s.bus.events)
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == ["completed", True]
        s.jump(25 * 3600)
        s.bus.events = sent
        await s.deliver(new_ids=True)
        await s.engine.idle(20)
        assert len(await s.engine.runs("product-flow")) == 1


@pytest.mark.guarantee("W2")
async def test_a_job_that_ended_before_the_wait_is_waited_for_no_more(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s)
        await end(s, job)
        await s.deliver()
        await s.send("flow", job=str(job.id), within=3600)
        (run,) = await s.ended()
        assert run.result == ["completed", True]
        assert [step.name for step in run.steps] == ["note", "wait/look-0"]


@pytest.mark.guarantee("W2")
async def test_a_job_that_ends_between_the_look_and_the_wait_costs_one_slice(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = PostgresJobStore.read
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s)

        async def end_after(self: PostgresJobStore, *args: Any) -> Any:
            found = await read(self, *args)
            if found is not None and not found.state.terminal:
                await end(s, job)
                await s.deliver()
            return found

        monkeypatch.setattr(PostgresJobStore, "read", end_after)
        await s.send("flow", job=str(job.id), within=3600)
        await s.waiting("wait/wait-0")
        s.jump(61)
        (run,) = await s.ended()
        assert run.result == ["completed", True]


async def test_a_job_that_does_not_end_in_time_is_answered_as_it_stands(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s)
        await s.send("flow", job=str(job.id), within=1)
        (run,) = await s.ended()
        assert run.result == ["submitted", False]


@pytest.mark.guarantee("T1")
async def test_another_organizations_job_is_not_found(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s, UUID(int=9))
        await s.send("flow", job=str(job.id), within=3600)
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "wait: not_found" in str(run.result)


@pytest.mark.guarantee("W4")
async def test_a_cancelled_workflow_waits_for_no_job_any_more(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()])) as s:
        job = await submitted(s)
        await s.send("flow", job=str(job.id), within=3600)
        await s.waiting("wait/wait-0")
        (run_id,) = [run["id"] for run in await s.runs() if run["kind"] == "workflow" and run["node"] == "container"]
        await s.platform.runs.cancel(s.organization_id, run_id)
        s.jump(61)
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "wait: cancelled" in str(run.result)
        (state,) = await s.rows("select state from agent.runs where id = %(id)s", id=run_id)
        assert state == {"state": "cancelled"}


async def test_what_is_no_id_of_a_job_is_a_job_that_is_not_found(database: str) -> None:
    async with stage(database, flow_app(waits, [World().write()], retries=3)) as s:
        await s.send("flow", job="job 7", within=60)
        (run, *_) = await s.ended()
        assert run.status == "failed"
        assert "wait: not_found" in str(run.result)
