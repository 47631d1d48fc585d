"""Runs the real command line: as a program whose output is read, and at a terminal where somebody types.

At the terminal an interpreter starts from nothing; a program whose output is read is forked where everything is imported.
"""

import asyncio
import contextlib
import errno
import json
import os
import pty
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from warm_commands import COMMANDS, DEMO
from warm_processes import Warm

PATIENCE_S = 150.0
"""For machines that are busy with other things."""
_PROGRAM = (sys.executable, "-c", "from agentic.cli import main; main()")
_UNSET = ("DATABASE_URL", "AGENTIC_MODEL", "INNGEST_DEV", "INNGEST_BASE_URL", "OPENAI_API_KEY")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def last(self) -> dict[str, Any]:
        """The JSON object in the last line of standard output."""
        last: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return last


class Terminal:
    """A command at a terminal: standard input is one, what it says is collected."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self._process = process
        self._master = master
        self._said = bytearray()
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def said(self) -> str:
        return self._said.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    async def shows(self, text: str) -> None:
        """Wait until the text stands on the screen."""
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.said:
                self._news.clear()
                assert self._process.returncode is None, self.said
                await self._news.wait()

    async def ended(self) -> Ended:
        async with asyncio.timeout(PATIENCE_S):
            stdout, _ = await self._process.communicate()
        return Ended(status=self._process.returncode or 0, stdout=stdout.decode(), stderr=self.said)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        if self._process.returncode is None:
            self._process.kill()

    def _read(self) -> None:
        try:
            self._said += os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # the other end is closed
                raise
            asyncio.get_running_loop().remove_reader(self._master)
        self._news.set()


@dataclass(frozen=True, kw_only=True)
class Agentic:
    """``agentic --folder FOLDER …`` in a surrounding of its own."""

    folder: Path
    environment: Mapping[str, str]
    warm: Warm
    turn: asyncio.Lock

    async def run(self, *arguments: str, **variables: str) -> Ended:
        """One after the other, also when they are asked for at once."""
        async with self.turn:
            ended = await asyncio.to_thread(
                self.warm.run,
                "agentic.cli:main",
                *("--folder", str(self.folder)),
                *arguments,
                environment={**self.environment, **variables},
                timeout_s=PATIENCE_S,
            )
        return Ended(status=ended.code, stdout=ended.out, stderr=ended.err)

    @asynccontextmanager
    async def at_terminal(self, *arguments: str) -> AsyncIterator[Terminal]:
        master, slave = pty.openpty()
        try:
            process = await asyncio.create_subprocess_exec(
                *_PROGRAM,
                *("--folder", str(self.folder)),
                *arguments,
                stdin=slave,
                stdout=asyncio.subprocess.PIPE,
                stderr=slave,
                env={**self.environment, "TERM": "dumb"},
            )
        finally:
            os.close(slave)
        terminal = Terminal(process, master)
        try:
            yield terminal
        finally:
            terminal.close()

    async def workers_gone(self) -> None:
        """Wait until no worker of this folder's demos lives."""
        async with asyncio.timeout(PATIENCE_S):
            while _workers(str(self.folder)):  # noqa: ASYNC110 - no event tells of another session's processes
                await asyncio.sleep(0.05)


def _workers(marker: str) -> list[int]:
    """Ids of worker processes whose environment names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_worker = entry.name.isdigit() and b"agentic.local.demo.worker" in (entry / "cmdline").read_bytes()
            if is_worker and f"AGENTIC_TEST_MARK={marker}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Forks the commands of this test run."""
    processes = Warm(*COMMANDS, *DEMO)
    yield processes
    processes.close()


@pytest.fixture
def agentic(warm: Warm) -> Iterator[Callable[..., Agentic]]:
    """Makes a command line with a fresh folder; keyword arguments are variables of its environment."""
    # not pytest's own folder: as root, the account that runs Postgres may not enter it
    parent = Path(tempfile.mkdtemp(prefix="agentic-demo-"))
    parent.chmod(0o711)
    turn = asyncio.Lock()
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}

    def make(**variables: str) -> Agentic:
        folder = parent / uuid.uuid4().hex[:8]
        environment = {**kept, "AGENTIC_TEST_MARK": str(folder), **variables}
        return Agentic(folder=folder, environment=environment, warm=warm, turn=turn)

    yield make
    shutil.rmtree(parent)
