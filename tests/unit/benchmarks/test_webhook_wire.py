"""What the load is sent over: a provider that reports seldom finds its connection closed, and opens another."""

import asyncio

from agentic.local.listening import listening_socket
from benchmarks.webhook_wire import KeptConnection, post

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def test_a_connection_that_was_closed_while_it_was_idle_is_opened_again() -> None:
    asked: list[bytes] = []
    closed = asyncio.Event()

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        writer.close()
        await writer.wait_closed()
        closed.set()

    listener = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with await asyncio.start_server(answer_once, sock=listener):
        connection = await KeptConnection.open(url, address="127.0.0.1")
        request = post(url, "/", {}, b"")
        async with asyncio.timeout(10):
            assert await connection.send(request) == 200
            await closed.wait()
            await _heard_the_end(connection)
            assert await connection.send(request) == 200
        await connection.close()
    assert len(asked) == 2


async def _heard_the_end(connection: KeptConnection) -> None:
    while not connection.closed:  # noqa: ASYNC110 - the stream tells nobody
        await asyncio.sleep(0)
