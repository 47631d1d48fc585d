"""Sockets of our servers: whoever keeps a connection is answered at once."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from agentic.cli.serving import _listening
from agentic.local.engine.server import bind
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.local.worker.serve import _listener

Listening = Callable[[], AbstractContextManager[socket.socket]]


@pytest.mark.parametrize(
    "listening",
    [
        pytest.param(lambda: _listening(0), id="agentic serve"),
        pytest.param(lambda: contextlib.closing(_listener(0)), id="a worker"),
        pytest.param(lambda: contextlib.closing(bind("127.0.0.1", 0)), id="the function engine"),
    ],
)
async def test_an_accepted_connection_sends_small_answers_at_once(listening: Listening) -> None:
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at_once = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        accepted.set_result(at_once)

    with listening() as listener:
        async with await asyncio.start_server(answer, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            async with asyncio.timeout(10):
                assert await accepted
            writer.close()
            await writer.wait_closed()


async def test_a_stand_in_sends_small_answers_at_once() -> None:
    async def app(scope: object, receive: object, send: Callable[..., object]) -> None:
        raise AssertionError("nothing is asked")

    async with LoopbackServer(app, name="stand-in") as server:
        host, port = server.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(10):
            while not (connections := server._server.server_state.connections):  # noqa: ASYNC110 - they have no event
                await asyncio.sleep(0)
        [connection] = connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await writer.wait_closed()
