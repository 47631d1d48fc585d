"""HTTP/1.1 as cheap as it gets, for a load on the machine it measures: kept connections that send prepared bytes, and a taker of events."""

import asyncio
import json
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import urlsplit

from agentic.contract.errors import ProgramFault
from agentic.local.listening import listening_socket

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_MAX_HEAD: Final = 64 * 1024


def post(url: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A POST as its bytes."""
    said = {
        "Host": urlsplit(url).netloc,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


class KeptConnection:
    """One connection: a request at a time, its status read, its body passed over. One that was closed while idle is opened again."""

    def __init__(self, url: str, address: str) -> None:
        self._url = urlsplit(url)
        self._address = address

    @classmethod
    async def open(cls, url: str, *, address: str) -> Self:
        """Connect from an address of this machine."""
        connection = cls(url, address)
        await connection._connect()
        return connection

    @property
    def closed(self) -> bool:
        """Whether the other end has closed it, as far as was heard."""
        return self._reader.at_eof()

    async def send(self, request: bytes) -> int:
        """Send the bytes of a request; the status of its answer.

        Raises:
            OSError: the connection broke.
            ProgramFault: the server closed it.
        """
        if self.closed:
            await self.close()
            await self._connect()
        self._writer.write(request)
        head, _body = await _message(self._reader)
        return int(head[9:12])

    async def close(self) -> None:
        """Close it."""
        self._writer.close()
        await self._writer.wait_closed()

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            self._url.hostname, self._url.port, local_addr=(self._address, 0)
        )


class EventTaker:
    """Takes events as the function server does, and remembers which jobs they told of."""

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self.jobs: list[str] = []
        """As often as each was told of."""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        listener = listening_socket("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._server = await asyncio.start_server(self._serve, sock=listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                _head, body = await _message(reader)
                events = json.loads(body)
                self.requests += 1
                self.jobs += [event["data"]["job_id"] for event in events if "job_id" in event["data"]]
                told = json.dumps({"ids": [event["id"] for event in events], "status": 200}).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(told)
                    + told
                )
        except ProgramFault:  # the other end closes between two requests
            writer.close()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    try:
        head = await reader.readuntil(_END_OF_HEAD)
        at = head.lower().find(_LENGTH)
        length = 0 if at < 0 else int(head[at + len(_LENGTH) : head.index(b"\r\n", at + 2)])
        return head, await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise ProgramFault("the other end closed a kept connection") from error
