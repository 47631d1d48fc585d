"""A worker as whoever starts it sees it: ready or failed, stopped in order, or killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from agentic.contract.errors import AgenticError
from agentic.local.home import DATABASE_URL
from agentic.local.worker.settings import VARIABLE, WorkerSettings

READY_S = 60.0
STOP_S = 20.0
_TAIL_CHARS = 600


class WorkerFailed(AgenticError):
    """A worker did not start, or ended by itself; the message quotes it or its log."""


class WorkerProcess:
    """One running worker, in a process group of its own so that a terminal's Ctrl-C reaches its starter alone."""

    def __init__(self, process: asyncio.subprocess.Process, *, name: str, url: str, log: Path) -> None:
        self._process = process
        self.name = name
        self.url = url
        """Where its functions are served."""
        self.log = log

    @classmethod
    async def start(
        cls,
        app: str,
        *,
        name: str,
        database_url: str,
        settings: WorkerSettings,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Start a worker and wait until the function server knows it.

        Args:
            app: import path of the app, as `loading.loaded` takes it.
            name: what messages call it.
            database_url: handed over in the environment, which other users cannot read.
            settings: how it runs. It always ends with this process, whatever they say.
            log: the file its log is appended to.
            environment: further variables, over those of this process.

        Raises:
            WorkerFailed: it ended, or said nothing for a minute.
        """
        mine = settings.model_copy(update={"ends_with_parent": True})
        variables = {
            **os.environ,
            **(environment or {}),
            DATABASE_URL: database_url,
            VARIABLE: mine.model_dump_json(),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "agentic.local.worker",
                app,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=file,
                env=variables,
                start_new_session=True,
            )
        worker = cls(process, name=name, url="", log=log)
        try:
            worker.url = await worker._ready()
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def stop(self, *, within_s: float = STOP_S) -> int:
        """Ask it to finish the call in hand and go; killed when it takes longer. Returns its exit status."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(within_s):
                    await self._process.wait()
            except TimeoutError:
                await self.kill()
        return await self._process.wait()

    async def kill(self) -> None:
        """End it at once, as a crash would, and wait until it is gone."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()

    def ended(self) -> WorkerFailed:
        """The error of a worker that ended by itself."""
        return WorkerFailed(f"{self.name} ended unexpectedly (status {self._process.returncode}). {self._tail()}")

    async def _ready(self) -> str:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(READY_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise WorkerFailed(f"{self.name} was not ready within {READY_S:.0f} s. {self._tail()}") from None
        try:
            said = json.loads(line)
            if "error" in said:
                raise WorkerFailed(f"{self.name} cannot start: {said['error']}")
            return str(said["ready"])
        except (ValueError, KeyError, TypeError):
            await self._process.wait()
            raise self.ended() from None

    def _tail(self) -> str:
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            text = ""
        return f"Its log is {self.log}" + (f" and ends with: {text[-_TAIL_CHARS:]}" if text else " and is empty.")
