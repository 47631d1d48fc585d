"""Keeps a number of workers at work: one that ends by itself or is killed is followed by another.

Nothing of a run is kept here. What a killed worker had in hand is found in the rows by the next one.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agentic.local.worker import WorkerFailed, WorkerProcess, WorkerSettings

RESTART_S = 1.0
"""Before a worker that ended is followed by the next, doubled for each that did not even start, up to a minute."""
_LONGEST_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerPlan:
    """What each worker is started with."""

    app: str
    database_url: str
    settings: WorkerSettings
    logs: Path
    environment: dict[str, str]


class Supervisor:
    """``async with Supervisor(...)``: the workers are up when the block begins and gone when it ends.

    Args:
        plan: what each is started with.
        count: how many at once.
        say: told, in sentences, when one ends and when another takes its place.
        restart_s: seconds before the next one.

    Raises:
        WorkerFailed: the first ones do not start.
    """

    def __init__(
        self, plan: WorkerPlan, *, count: int, say: Callable[[str], None], restart_s: float = RESTART_S
    ) -> None:
        self._plan = plan
        self._count = count
        self._say = say
        self._restart_s = restart_s
        self._begun = 0
        self._workers: dict[int, WorkerProcess] = {}
        self._keepers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.TaskGroup() as starting:
                for place in range(self._count):
                    starting.create_task(self._begin(place))
        except BaseExceptionGroup as failures:
            await self._stop()
            raise failures.exceptions[0] from None
        except BaseException:
            await self._stop()
            raise
        self._keepers = [asyncio.create_task(self._keep(place), name=f"worker {place}") for place in range(self._count)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await self._stop()

    async def _keep(self, place: int) -> None:
        wait_s = self._restart_s
        while True:
            worker = self._workers[place]
            status = await worker.wait()
            self._say(f"{worker.name} ended (status {status}); another takes its place")
            while True:
                await asyncio.sleep(wait_s)
                try:
                    await self._begin(place)
                except (
                    WorkerFailed,
                    OSError,
                ) as failed:  # the machine's too: no process, no memory, no disk for the log
                    self._say(f"no worker takes the place: {failed}" if isinstance(failed, OSError) else str(failed))
                    wait_s = min(wait_s * 2, _LONGEST_S)
                else:
                    wait_s = self._restart_s
                    break

    async def _begin(self, place: int) -> None:
        self._begun += 1
        name = f"worker {self._begun}"
        worker = await WorkerProcess.prepare(self._plan.app)
        self._workers[place] = worker  # before it begins, so that a stop meanwhile finds it
        await worker.begin(
            name=name,
            database_url=self._plan.database_url,
            settings=self._plan.settings,
            log=self._plan.logs / f"{name.replace(' ', '-')}.log",
            environment=self._plan.environment,
        )

    async def _stop(self) -> None:
        stopping = [worker.stop() for worker in self._workers.values()]
        with contextlib.suppress(ProcessLookupError):
            await asyncio.gather(*stopping)
