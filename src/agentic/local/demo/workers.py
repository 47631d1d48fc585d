"""The demo's workers: one at work, the next one standing by, so that taking over needs no warm-up."""

from collections.abc import Mapping
from pathlib import Path

from agentic.local.worker import WorkerProcess, WorkerSettings

APP = "agentic.local.demo.app:worker_app"
PROGRAM = "agentic.local.demo.worker"


class Workers:
    """Starts workers one after the other. ``stop`` leaves none behind."""

    def __init__(self) -> None:
        self._spare: WorkerProcess | None = None
        self._begun: list[WorkerProcess] = []

    async def prepare(self) -> None:
        """Have the next worker get ready in the background."""
        if self._spare is None:
            self._spare = await WorkerProcess.prepare(APP, program=PROGRAM)

    async def begin(
        self, *, database_url: str, settings: WorkerSettings, logs: Path, environment: Mapping[str, str]
    ) -> WorkerProcess:
        """The next worker, once the function server knows it.

        Raises:
            WorkerFailed: it does not start.
        """
        await self.prepare()
        worker, self._spare = self._spare, None
        assert worker is not None
        self._begun.append(worker)
        number = len(self._begun)
        await worker.begin(
            name=f"worker {number}",
            database_url=database_url,
            settings=settings,
            log=logs / f"worker-{number}.log",
            environment=environment,
        )
        return worker

    async def stop(self) -> None:
        """Stop every one of them."""
        if self._spare is not None:
            await self._spare.kill()
        for worker in self._begun:
            await worker.stop()
