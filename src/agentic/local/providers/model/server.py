"""Serves the provider on a free loopback port, inside the current process."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import uvicorn

from agentic.local.providers.model.app import model_app
from agentic.local.providers.model.script import ModelScript, Reply


class ModelServer:
    """``async with ModelServer(Answer(text="Hi.")) as server`` answers at ``server.url`` until the block ends.

    Args:
        replies: what it answers, in order; ``server.script.add`` takes more.
        port: on 127.0.0.1; 0 takes a free one.

    Raises:
        OSError: on entering, when the port is taken.
    """

    def __init__(self, *replies: Reply, port: int = 0) -> None:
        self.script = ModelScript(*replies)
        self.url = ""
        """The ``base_url`` of a model object, while it serves."""
        self._port = port
        config = uvicorn.Config(
            model_app(self.script), lifespan="off", access_log=False, log_config=None, timeout_graceful_shutdown=1
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
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="local model provider")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.script.release_all()
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Quiet(uvicorn.Server):
    """Leaves the process's signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
