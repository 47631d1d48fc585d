"""A server over the standard streams of a child process: the SDK's messages on one side, lines on the other.

The SDK's own transport merges our environment into the child's, reads without a bound, stops at one bad byte and leaves grandchildren.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from mcp.shared.message import SessionMessage

from agentic.services.mcp.child import MAX_LINE_BYTES, Child
from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.environment import child_environment
from agentic.services.mcp.failures import TRACE, Trouble
from agentic.services.mcp.lines import message_of

_LINES_A_ROUND: Final = 64


class StdioWire:
    """What the SDK reads from and writes to."""

    def __init__(self, child: Child, secrets: Sequence[str]) -> None:
        self._child = child
        self._secrets = secrets
        self._taken = 0
        self.dropped = 0
        """Lines that were no message."""

    @property
    def fault(self) -> Trouble | None:
        """Why the transport ended the server, if it did."""
        return self._child.fault

    @property
    def exit_code(self) -> int | None:
        """Of a server that ended."""
        return self._child.exit_code

    def stderr_tail(self) -> str | None:
        """The end of what the server wrote to stderr, redacted."""
        return self._child.stderr_tail(self._secrets) or None

    def kill(self) -> None:
        """End the server and everything it started, now."""
        self._child.kill()

    async def receive(self) -> SessionMessage:
        """The next message; what is none is counted and skipped.

        Raises:
            anyio.EndOfStream: the server closed its output, or ended.
        """
        while True:
            self._taken += 1
            if self._taken % _LINES_A_ROUND == 0:
                await asyncio.sleep(0)  # a queue that is never empty never gives way to others
            line = await self._child.line()
            if line is None:
                raise anyio.EndOfStream
            if not line.strip():
                continue
            if (message := message_of(line)) is not None:
                return SessionMessage(message)
            self.dropped += 1

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message.

        Raises:
            anyio.BrokenResourceError: the server is gone.
        """
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            await self._child.write(text.encode())
        except OSError as error:
            if (trace := TRACE.get()) is not None:
                trace.sent = False
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Nothing: who opened the wire closes the child."""


@asynccontextmanager
async def stdio_wire(
    launch: StdioLaunch, credential: dict[str, str], *, max_line_bytes: int = MAX_LINE_BYTES
) -> AsyncIterator[StdioWire]:
    """Start a server, and end it and all it started on the way out.

    Args:
        credential: the one secret variable of its environment, or nothing.

    Raises:
        RemoteFailure: it could not be started.
    """
    own = None if launch.home is not None else tempfile.mkdtemp(prefix="agentic-mcp-")
    try:
        environment = child_environment(
            home=launch.home or own or "/", path=launch.path, variables=launch.variables, credential=credential
        )
        child = await Child.start(launch, environment, max_line_bytes=max_line_bytes)
        try:
            yield StdioWire(child, tuple(credential.values()))
        finally:
            with anyio.CancelScope(shield=True):
                await child.close()
    finally:
        if own is not None:
            with anyio.CancelScope(shield=True):
                await asyncio.to_thread(shutil.rmtree, own, ignore_errors=True)
