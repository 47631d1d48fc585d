"""A worker as whoever starts it sees it: prepared, begun, stopped in order, or killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

from agentic.contract.errors import AgenticError
from agentic.local.home import DATABASE_URL
from agentic.local.worker.settings import VARIABLE, WorkerSettings
from agentic.local.worker.standby import FLAG, Orders

PROGRAM = "agentic.local.worker"
READY_S = 120.0
"""Seconds, for a machine that is busy with other things."""
STOP_S = 20.0
_TAIL_CHARS = 600


class WorkerFailed(AgenticError):
    """A worker did not start, or ended by itself; the message quotes it or its log."""


class WorkerProcess:
    """One worker, in a process group of its own so that a terminal's Ctrl-C reaches its starter alone."""

    def __init__(self, process: asyncio.subprocess.Process, *, early: IO[bytes]) -> None:
        self._process = process
        self._early = early
        self._log: Path | None = None
        self.name = "worker"
        self.url = ""
        """Where its functions are served, once it has begun."""

    @classmethod
    async def prepare(cls, app: str, *, program: str = PROGRAM) -> Self:
        """Start a process that imports what it needs and waits for `begin`. It ends with this one, however that ends.

        Args:
            app: import path of the app, as `loading.loaded` takes it.
            program: the module that is run; it understands what this one's does.
        """
        early = tempfile.TemporaryFile()  # noqa: SIM115 - read when the worker fails, closed with it
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            program,
            FLAG,
            app,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=early,
            start_new_session=True,
        )
        return cls(process, early=early)

    async def begin(
        self,
        *,
        name: str,
        database_url: str,
        settings: WorkerSettings,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Have it work, and wait until the function server knows it.

        Args:
            name: what messages call it.
            database_url: where its runs are.
            settings: how it runs. It ends with this process, whatever they say.
            log: the file its log is appended to.
            environment: further variables, over those of this process.

        Raises:
            WorkerFailed: it ended, or did not become ready; it is gone then.
        """
        self.name = name
        self._log = log
        mine = settings.model_copy(update={"ends_with_parent": True})
        variables = {**(environment or {}), DATABASE_URL: database_url, VARIABLE: mine.model_dump_json()}
        log.parent.mkdir(parents=True, exist_ok=True)
        orders = Orders(environment=variables, log=str(log))
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(orders.model_dump_json().encode() + b"\n")
            with contextlib.suppress(ConnectionError):  # it died; its answer, or the lack of one, says so
                await self._process.stdin.drain()
            self.url = await self._ready()
            self._early.close()
        except BaseException:
            await self.kill()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def stop(self, *, within_s: float = STOP_S) -> None:
        """Ask it to finish the call in hand and go; killed when it takes longer, and when it had not begun."""
        if self.running and self.url:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._process.wait()
        await self.kill()

    async def wait(self) -> int:
        """Wait until it has ended; its exit status, negative for a signal."""
        return await self._process.wait()

    async def kill(self) -> None:
        """End it at once, as a crash would, and wait until it is gone."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        self._early.close()

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
        except ValueError:
            await self._process.wait()
            raise self.ended() from None
        if "error" in said:
            raise WorkerFailed(f"{self.name} cannot start: {said['error']}")
        return str(said["ready"])

    def _tail(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log and self._log.exists() else ""
        if not text:
            size = self._early.seek(0, os.SEEK_END)
            self._early.seek(max(0, size - _TAIL_CHARS))
            text = self._early.read().decode("utf-8", "replace")
        said = text.strip()[-_TAIL_CHARS:]
        return f"Its log ends with: {said}" if said else "It wrote no log."
