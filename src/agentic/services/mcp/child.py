"""One child process and its pipes: bounded lines out of it, lines into it, the end of its stderr, and no process left behind.

Knows nothing of the protocol. The operating system's process group is what ends: the guard, the server and whatever it started.
"""

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from agentic.services.mcp import guard
from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.tools.redaction import redact_text

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
STDERR_TAIL_BYTES: Final = 8 * 1024
GRACE_S: Final = 1.5
"""For each of two requests to leave: the end of its input, then SIGTERM."""
_STDERR_SLACK: Final = 4 * 1024
"""Kept before the tail until it is redacted, so that a secret cut in two is still found."""
_UNREAD_BYTES: Final = 1024 * 1024
"""Lines that nobody has taken yet; beyond them the server has to wait."""
_ESCAPED_S: Final = 0.5
"""For what is still in the pipe of a server that ended, when a process that left its group keeps the pipe open."""


class Child(asyncio.SubprocessProtocol):
    """A started server. Made by ``start`` and ended by ``close``, both in the task that owns it."""

    def __init__(self, *, max_line_bytes: int, life: int) -> None:
        self._max_line = max_line_bytes
        self._life: int | None = life
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unread = 0
        self._partial = bytearray()
        self._stderr = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._ended = False
        self.fault: Trouble | None = None

    @classmethod
    async def start(
        cls, launch: StdioLaunch, environment: dict[str, str], *, max_line_bytes: int = MAX_LINE_BYTES
    ) -> Self:
        """Start the server under its guard.

        A worker that dies in here, or anywhere later, takes the server with it: the guard sees its pipe end.

        Raises:
            RemoteFailure: there is no such program, or it may not be started.
        """
        program = shutil.which(launch.command[0], path=launch.path)
        if program is None:
            raise RemoteFailure(Trouble.NOT_STARTED, "the command of the server is no program on its path")
        # absolute, because the guard starts in the server's folder; a link keeps its name
        command = (os.fspath(Path.cwd() / program), *launch.command[1:])
        held = _held(launch.home)
        reads, writes = os.pipe()
        try:
            starting = asyncio.ensure_future(
                asyncio.get_running_loop().subprocess_exec(
                    lambda: cls(max_line_bytes=max_line_bytes, life=writes),
                    *(sys.executable, "-I", "-S", guard.__file__, ",".join(map(str, (reads, *held))), *command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                    cwd=launch.cwd,
                    start_new_session=True,
                    pass_fds=(reads, *held),
                )
            )
            try:
                _, child = await asyncio.shield(starting)
            except asyncio.CancelledError:
                # a start that is cut off half way would leave a process that nobody knows; it takes milliseconds
                while not starting.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait({starting})
                if starting.exception() is None:
                    await starting.result()[1].close()
                raise
        except OSError as error:
            os.close(writes)
            raise RemoteFailure(
                Trouble.NOT_STARTED, f"the server could not be started: {error.strerror or type(error).__name__}"
            ) from None
        finally:
            for descriptor in (reads, *held):
                os.close(descriptor)
        return child

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process runs."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what it wrote, and stop reading when nobody takes it from here."""
        if fd == 2:
            self._stderr += data
            del self._stderr[: -(STDERR_TAIL_BYTES + _STDERR_SLACK)]
            return
        if self._ended:
            return
        first, *others = data.split(b"\n")
        self._partial += first
        for line in others:
            if len(self._partial) <= self._max_line:
                self._put(bytes(self._partial))
            self._partial = bytearray(line)
        if len(self._partial) > self._max_line:
            self.fault = Trouble.TOO_LARGE
            self._end()
            self.kill()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A pipe is gone: nothing can be written any more, or nothing comes."""
        if fd == 0:
            self._writable.set()
        elif fd == 1:
            self._end()

    def process_exited(self) -> None:
        """It ended, so everything it started does; at once, before its number can belong to others."""
        self.kill()
        self._exited.set()
        self._writable.set()
        asyncio.get_running_loop().call_later(_ESCAPED_S, self._end)

    def pause_writing(self) -> None:
        """Its input is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    # what the owner calls

    @property
    def pid(self) -> int:
        """Of the process group."""
        assert self._transport is not None
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """Of the server; ``None`` while it runs."""
        return self._transport.get_returncode() if self._transport is not None else None

    async def line(self) -> bytes | None:
        """The next line without its end; ``None`` when there will be none."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)  # it stays the end for whoever asks again
            return None
        was, self._unread = self._unread, self._unread - len(line)
        if was > _UNREAD_BYTES >= self._unread and (stdout := self._pipe(1)) is not None:
            stdout.resume_reading()
        return line

    async def write(self, line: bytes) -> None:
        """Hand over a line, whole even when the caller is cancelled while the server does not read.

        Raises:
            BrokenPipeError: nobody is there to read it.
        """
        await self._writable.wait()
        stdin = self._pipe(0)
        if self._exited.is_set() or stdin is None or stdin.is_closing():
            raise BrokenPipeError
        stdin.write(line + b"\n")
        await self._writable.wait()

    def stderr_tail(self, secrets: Sequence[str]) -> str:
        """The last of what it wrote to stderr, at most 8 KiB, without the secrets it was given."""
        text = redact_text(bytes(self._stderr).decode(errors="replace"), secrets)
        return text.encode()[-STDERR_TAIL_BYTES:].decode(errors="ignore")

    def kill(self) -> None:
        """End the whole group now."""
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        """End the server: the end of its input, SIGTERM, SIGKILL to the group. Nothing of it is left, whatever it ignores.

        Cancelled, it does the last step at once.
        """
        try:
            if (stdin := self._pipe(0)) is not None:
                stdin.close()
            if not await self._gone():
                self._signal(signal.SIGTERM)
                if not await self._gone():
                    self.kill()
                    await self._exited.wait()
        finally:
            self.kill()
            self._end()
            if (stdin := self._pipe(0)) is not None and stdin.get_write_buffer_size():
                stdin.abort()  # what it never read
            if self._transport is not None:
                self._transport.close()
            if self._life is not None:
                os.close(self._life)
                self._life = None
        await asyncio.sleep(0)  # the loop closes the pipes in its next round

    async def _gone(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        if self._exited.is_set():
            return  # its number may be somebody else's by now
        # a group with no member left, or one that is not ours any more
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _put(self, line: bytes) -> None:
        was, self._unread = self._unread, self._unread + len(line)
        self._lines.put_nowait(line)
        if was <= _UNREAD_BYTES < self._unread and (stdout := self._pipe(1)) is not None:
            stdout.pause_reading()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._partial.clear()
            self._lines.put_nowait(None)

    def _pipe(self, fd: int) -> "_Pipe | None":
        assert self._transport is not None
        return self._transport.get_pipe_transport(fd)  # type: ignore[return-value]


def _held(home: str | None) -> tuple[int, ...]:
    """A descriptor by which a kept HOME is held for as long as the guard lives, so that nobody takes the folder away under it.

    Raises:
        RemoteFailure: somebody is about to, because the server is retired.
    """
    if home is None:
        return ()
    try:
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return ()  # the server itself says what it is about its folder
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RemoteFailure(
            Trouble.NOT_STARTED, f"its home {home} is being removed; start it again after that"
        ) from None
    except OSError:  # a file system that knows no locks; there, whoever removes the folder is refused as well
        os.close(descriptor)
        return ()
    return (descriptor,)


class _Pipe(asyncio.ReadTransport, asyncio.WriteTransport):
    """Both directions of a pipe's transport, for the type checker: which one a pipe has follows from its number."""
