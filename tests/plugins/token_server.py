"""A token endpoint and a vendor behind it, on one loopback port: each keeps what it was sent and answers what the test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl


@dataclass(kw_only=True)
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass(kw_only=True)
class TokenServer:
    """Grants ``token-value-1``, ``token-value-2`` and so on until it is told otherwise."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    """What came to the token endpoint."""
    called: list[Asked] = field(default_factory=list)
    """What came to the vendor, which is every other path."""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    """Status and body of the next answers of the token endpoint; ``None`` as a body hangs up."""
    lifetime_s: Any = 3600
    rotating: bool = False
    """Each answer replaces the refresh token."""
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, the token endpoint keeps everybody waiting; set from the beginning."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has come to the token endpoint."""
    vendor_status: list[int] = field(default_factory=list)
    """Status of the vendor's next answers; 200 after them."""

    @property
    def token_endpoint(self) -> str:
        """Its address."""
        return f"{self.url}/oauth/token"

    async def answer(self, asked: Asked) -> tuple[int, Any]:
        """What a request is answered with."""
        if asked.path != "/oauth/token":
            self.called.append(asked)
            return (self.vendor_status.pop(0) if self.vendor_status else 200), {"ok": True}
        self.asked.append(asked)
        number = len(self.asked)
        self.arrived.set()
        await self.open.wait()
        if self.answers:
            return self.answers.pop(0)
        granted = {"access_token": f"token-value-{number}", "token_type": "bearer"}
        if self.lifetime_s is not None:
            granted["expires_in"] = self.lifetime_s
        if self.rotating:
            granted["refresh_token"] = f"refresh-value-{number}"
        return 200, granted


@asynccontextmanager
async def token_server() -> AsyncIterator[TokenServer]:
    """Serve until the block ends."""
    made = TokenServer()
    made.open.set()
    handling: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            asked = Asked(path=head[0].split()[1], headers=headers, form=dict(parse_qsl(body.decode())))
            status, said = await made.answer(asked)
            if said is not None:
                text = said if isinstance(said, bytes) else json.dumps(said).encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n".encode() + text
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a client that was killed
        finally:
            writer.close()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(handle(reader, writer))
        handling.add(task)
        task.add_done_callback(handling.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.open.set()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*handling)
