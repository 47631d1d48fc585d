"""A server over HTTP that misbehaves on demand: bytes on a socket, no HTTP library and no SDK, so that it can say what none would."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The message it carries."""
        loaded = json.loads(self.body) if self.body else {}
        return loaded if isinstance(loaded, dict) else {}

    @property
    def tool(self) -> str | None:
        """The tool it calls."""
        return self.message["params"]["name"] if self.message.get("method") == "tools/call" else None


Answer = bytes | None
"""What is written before the connection is closed; ``None`` to close without a word."""


def plain(status: str, body: bytes = b"", *headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def rpc(id: Any, result: Any, *headers: str) -> bytes:
    """A result as JSON."""
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    return plain("200 OK", body, "Content-Type: application/json", *headers)


def event(message: dict[str, Any], id: str | None = None) -> bytes:
    """One event of a stream."""
    name = f"id: {id}\r\n" if id is not None else ""
    return f"{name}event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass(kw_only=True)
class Scripted:
    """What arrived, and what is answered."""

    on: Callable[["Scripted", Asked], Any]
    seen: list[Asked] = field(default_factory=list)
    sessions: int = 0
    live: set[str] = field(default_factory=set)
    port: int = 0
    scheme: str = "http"
    host: str = "127.0.0.1"
    open: int = 0
    release: asyncio.Event = field(default_factory=asyncio.Event)
    tools: list[Any] = field(default_factory=list)
    """What it lists."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{self.host}:{self.port}/mcp"

    def calls(self, tool: str | None = None) -> list[Asked]:
        """The calls of tools that arrived."""
        return [each for each in self.seen if each.tool is not None and tool in (None, each.tool)]

    def asked(self, method: str) -> list[Asked]:
        """The requests of a method of the protocol."""
        return [each for each in self.seen if each.message.get("method") == method]

    def usual(self, asked: Asked) -> Answer:
        """What a server that means well answers."""
        if asked.method == "DELETE":
            self.live.discard(asked.headers.get("mcp-session-id", ""))
            return plain("200 OK")
        if asked.method == "GET":
            return plain("405 Method Not Allowed")
        message = asked.message
        match message.get("method"):
            case "initialize":
                self.sessions += 1
                session = f"s-{self.sessions}"
                self.live.add(session)
                said = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "scripted", "version": "1"},
                }
                return rpc(message["id"], said, f"Mcp-Session-Id: {session}")
            case "tools/call":
                return rpc(message["id"], {"content": [{"type": "text", "text": "done"}]})
            case "tools/list":
                return rpc(message["id"], {"tools": self.tools})
            case _:
                return plain("202 Accepted")


@asynccontextmanager
async def scripted(
    on: Callable[[Scripted, Asked], Any] | None = None, *, tls: ssl.SSLContext | None = None, tools: Sequence[Any] = ()
) -> AsyncIterator[Scripted]:
    """Serve on loopback.

    Args:
        tools: what it lists.
        on: asked first; what it returns is the answer, `...` for the usual one. It may be a coroutine function. An answer that is a
            list is written part by part, and an event in it is waited for.
    """
    scheme, host = ("http", "127.0.0.1") if tls is None else ("https", "localhost")
    server = Scripted(scheme=scheme, host=host, on=on or (lambda self, asked: ...), tools=list(tools))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.open += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await one(reader, writer)
        finally:
            server.open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(method=method, path=path, headers=headers, body=body)
        server.seen.append(asked)
        answer = server.on(server, asked)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is ...:
            answer = server.usual(asked)
        for part in answer if isinstance(answer, list) else [answer]:
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif part is not None:
                writer.write(part)
                await writer.drain()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.release.set()
        listener.close()
        await listener.wait_closed()
