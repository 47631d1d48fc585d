"""Serves a stand-in for a provider on a free loopback port, inside the current process."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import uvicorn


class LoopbackServer:
    """``async with LoopbackServer(app, name=...) as server`` answers at ``server.url`` until the block ends.

    Args:
        app: an ASGI application.
        name: of the task that serves it.
        port: on 127.0.0.1; 0 takes a free one.
        path: what stands behind the port in ``url``.
        release: called as the block ends, so that no request that stands still keeps the server.
        grace_s: whole seconds that requests in flight are given then.

    Raises:
        OSError: on entering, when the port is taken.
    """

    def __init__(
        self,
        app: Any,
        *,
        name: str,
        port: int = 0,
        path: str = "",
        release: Callable[[], None] | None = None,
        grace_s: int = 2,
    ) -> None:
        self.url = ""
        """``http://127.0.0.1:PORT`` and the path, while it serves."""
        self._name, self._port, self._path, self._release = name, port, path, release
        config = uvicorn.Config(
            app, lifespan="off", access_log=False, log_config=None, timeout_graceful_shutdown=grace_s
        )
        self._server = _Quiet(config)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        # without the protocol asyncio leaves Nagle's algorithm on, and a kept connection waits 40 ms for each answer
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            # Listening from here on: a client that comes before the loop runs the server waits in the backlog.
            listener.listen()
        except BaseException:
            listener.close()
            raise
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}{self._path}"
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name=self._name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._release is not None:
            self._release()
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Quiet(uvicorn.Server):
    """Leaves the process's signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
