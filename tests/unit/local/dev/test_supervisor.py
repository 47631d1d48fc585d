"""A place at work is filled again, whatever keeps the next worker from starting at first."""

import asyncio
from pathlib import Path
from typing import Self

import pytest

from agentic.local.dev import supervisor
from agentic.local.dev.supervisor import Supervisor, WorkerPlan
from agentic.local.worker import WorkerFailed, WorkerSettings


class Worker:
    """Stands in for a process; each start after the first meets the next fault, while there is one."""

    faults: list[Exception]
    begun: list["Worker"]

    def __init__(self) -> None:
        self.name = "worker"
        self.over = asyncio.Event()

    @classmethod
    async def prepare(cls, app: str) -> Self:
        if cls.begun and cls.faults:
            raise cls.faults.pop(0)
        return cls()

    async def begin(self, *, name: str, **_: object) -> None:
        self.name = name
        type(self).begun.append(self)

    async def wait(self) -> int:
        await self.over.wait()
        return -9

    async def stop(self) -> None:
        self.over.set()


async def test_a_worker_that_the_machine_cannot_start_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Worker.faults = [OSError(11, "Resource temporarily unavailable"), WorkerFailed("worker 3 cannot start: x")]
    Worker.begun = []
    monkeypatch.setattr(supervisor, "WorkerProcess", Worker)
    plan = WorkerPlan(app="a:a", database_url="", settings=WorkerSettings(), logs=tmp_path, environment={})
    said: list[str] = []
    async with Supervisor(plan, count=1, say=said.append, restart_s=0.001):
        Worker.begun[0].over.set()
        async with asyncio.timeout(20):
            while len(Worker.begun) < 2:  # noqa: ASYNC110 - the supervisor has no event for it
                await asyncio.sleep(0.001)
    assert said[0] == "worker 1 ended (status -9); another takes its place"
    assert "Resource temporarily unavailable" in said[1]
    assert said[2] == "worker 3 cannot start: x"
