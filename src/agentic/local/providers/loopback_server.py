"""Serves a stand-in for a provider on a free loopback port, inside the current process."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import uvicorn

from agentic.local.listening import UnsignalledServer, listening_socket


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
        self._server = UnsignalledServer(config)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        listener = listening_socket("127.0.0.1", self._port)
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
