"""Serves the provider on a free loopback port, inside the current process."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import uvicorn

from agentic.local.providers.mail.app import DEFAULT_ADDRESS, mail_app
from agentic.local.providers.mail.store import MailStore


class MailServer:
    """``async with MailServer(...) as server`` answers at ``server.url`` until the block ends.

    Args:
        store: what the provider works on.
        api_key: the bearer key it expects.
        grant_id: the mailbox.
        address: that mailbox's own address.
        port: on 127.0.0.1; 0 takes a free one.

    Raises:
        OSError: on entering, when the port is taken.
    """

    def __init__(
        self, *, store: MailStore, api_key: str, grant_id: str, address: str = DEFAULT_ADDRESS, port: int = 0
    ) -> None:
        self.store = store
        self.url = ""
        """``http://127.0.0.1:PORT`` while it serves."""
        self._port = port
        config = uvicorn.Config(
            mail_app(store, api_key, grant_id, address=address),
            lifespan="off",
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=2,
        )
        self._server = _Quiet(config)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            # Listening from here on: a client that comes before the loop runs the server waits in the backlog.
            listener.listen()
        except BaseException:
            listener.close()
            raise
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="local mail provider")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.release_all()
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Quiet(uvicorn.Server):
    """Leaves the process's signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
