"""A server on loopback that speaks the part of Supabase Storage's HTTP interface the package uses, refusals included.

As the service does, it answers most refusals with status 400 and names the status it means in the body.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

BUCKET = "agentic-artifacts"
KEY = "service-key-0123456789"


@dataclass(kw_only=True)
class ObjectStore:
    """What the server holds and how it misbehaves.

    Attributes:
        objects: media type and bytes by path.
        seen: method, path and headers of every request, in order.
        busy: statuses given to the next requests in place of an answer.
        cuts: how many of the next connections end after the request was read and done, without an answer.
        silent: whether requests are read and never answered.
    """

    port: int = 0
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    cuts: int = 0
    silent: bool = False
    never: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, media type and body."""
        if headers.get("authorization") != f"Bearer {KEY}" or headers.get("apikey") != KEY:
            return _refusal(403, "Unauthorized", "invalid signature")
        place = path.removeprefix("/storage/v1/object/")
        listing, reading = f"list/{BUCKET}", f"authenticated/{BUCKET}/"
        if (method, place) == ("POST", listing):
            asked = json.loads(body)
            prefix = asked["prefix"] + "/"
            names = sorted(key.removeprefix(prefix) for key in self.objects if key.startswith(prefix))
            page = names[asked["offset"] : asked["offset"] + asked["limit"]]
            return _json(200, [{"name": name, "id": f"id-of-{name}"} for name in page])
        if method == "GET" and place.startswith(reading):
            found = self.objects.get(place.removeprefix(reading))
            return _refusal(404, "not_found", "Object not found") if found is None else (200, *found)
        if (method, place) == ("DELETE", BUCKET):
            gone = [prefix for prefix in json.loads(body)["prefixes"] if self.objects.pop(prefix, None) is not None]
            return _json(200, [{"name": name} for name in gone])
        if method == "POST" and place.startswith(f"{BUCKET}/"):
            key = place.removeprefix(f"{BUCKET}/")
            if key in self.objects and headers.get("x-upsert") != "true":
                return _refusal(409, "Duplicate", "The resource already exists")
            self.objects[key] = (headers["content-type"], body)
            return _json(200, {"Key": place, "Id": "an-id"})
        return _refusal(404, "not_found", "Bucket not found")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {
                    name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.seen.append((method, path, headers))
                if self.silent:
                    await self.never.wait()
                if self.busy:
                    status, kind, content = self.busy.pop(0), "text/plain", b"try again"
                else:
                    status, kind, content = self.answer(method, path, headers, body)
                if self.cuts:
                    self.cuts -= 1
                    return
                lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", f"content-length: {len(content)}", "", ""]
                writer.write("\r\n".join(lines).encode() + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def object_store() -> AsyncIterator[ObjectStore]:
    """Serve until the block ends."""
    store = ObjectStore()
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    store.port = server.sockets[0].getsockname()[1]
    try:
        yield store
    finally:
        store.never.set()
        server.close()
        await server.wait_closed()


def _json(status: int, value: Any) -> tuple[int, str, bytes]:
    return status, "application/json", json.dumps(value).encode()


def _refusal(meant: int, error: str, message: str) -> tuple[int, str, bytes]:
    return _json(400, {"statusCode": str(meant), "error": error, "message": message})
