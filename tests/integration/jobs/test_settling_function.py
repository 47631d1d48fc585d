"""``provider_job.settle`` on the engine: the event of an ended job settles it; three repeats, then one report (M1, W2)."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI

from agentic.bootstrap import App, function_ports
from agentic.contract.errors import RetryLater
from agentic.contract.events import Event, EventName
from agentic.functions.bus import InngestBus
from agentic.functions.provider_job_settle import RETRIES, provider_job_settle
from agentic.functions.provider_jobs_sweep import provider_jobs_sweep
from agentic.functions.serve import Function, all_functions, mount
from agentic.local.engine.server import bind, serving
from workflow_stage import Stage, stage

JOB = UUID(int=5)


class Settling:
    """Settles, or fails, and counts."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.settled: list[UUID] = []
        self.given_up: list[UUID] = []

    async def settle(self, organization_id: UUID, job_id: UUID) -> bool:
        self.settled.append(job_id)
        if self.fails:
            raise RetryLater("no price covers it")
        return len(self.settled) == 1

    async def give_up(self, organization_id: UUID, job_id: UUID) -> None:
        self.given_up.append(job_id)


@contextlib.asynccontextmanager
async def settles(database: str, settling: Settling) -> AsyncIterator[Stage]:
    """The function on an engine."""
    async with stage(database, App(), serve=False) as s:
        web = FastAPI(openapi_url=None)
        mount(web, s.client, [provider_job_settle(s.client, settling)])
        listener = bind("127.0.0.1", 0)
        async with serving(web, listener):
            await s.engine.sync(f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest")
            yield s


def ended(s: Stage, **other: Any) -> Event:
    """The event of a job that ended."""
    return Event(
        name=EventName.PROVIDER_JOB_COMPLETED,
        organization_id=s.organization_id,
        run_id=UUID(int=6),
        job_id=JOB,
        **other,
    )


@pytest.mark.guarantee("M1", "W2")
async def test_the_event_of_an_ended_job_settles_it_and_a_second_event_asks_again(database: str) -> None:
    settling = Settling(fails=False)
    async with settles(database, settling) as s:
        await InngestBus(s.client).send([ended(s), ended(s)])
        views = await s.ended(2)
        assert [view.result for view in views] == [{"settled": True}, {"settled": False}] or [
            view.result for view in views
        ] == [{"settled": False}, {"settled": True}]
        assert settling.settled == [JOB, JOB]


@pytest.mark.guarantee("M1")
async def test_a_job_that_cannot_be_counted_is_tried_again_three_times_and_given_up_once(database: str) -> None:
    settling = Settling(fails=True)
    async with settles(database, settling) as s:
        await InngestBus(s.client).send([ended(s)])

        async def given_up() -> bool:
            return bool(settling.given_up)

        await s.until(given_up)
        assert settling.given_up == [JOB]
        assert settling.settled == [JOB] * (1 + RETRIES)


async def test_a_deployment_serves_the_settling_and_the_sweep(database: str) -> None:
    async with stage(database, App(), serve=False) as s:
        served = {function.id for function in all_functions(s.client, function_ports(s.platform))}
        own: list[Function] = [
            provider_job_settle(s.client, s.platform.settling),
            provider_jobs_sweep(s.client, s.platform.reconciling),
        ]
        assert {function.id for function in own} <= served
