"""What the stand-ins of research vendors have in common: requests noted, answers ordered in advance, the ASGI face.

A stand-in answers as its vendor documents. What a vendor does only now and then is ordered with ``then``: one entry a request, in
order, and after the last one it answers by itself again.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from agentic.local.providers.loopback_server import LoopbackServer

_CREDENTIALS = frozenset({"authorization", "x-api-key"})

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """One request as it arrived.

    Attributes:
        query: of the URL; a repeated name keeps its last value.
        headers: names in lower case. Those that carry credentials are gone once the request was judged.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    raw: bytes

    @property
    def json(self) -> Any:
        """The body; ``None`` when it is no JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    @property
    def key(self) -> str | None:
        """The API key, from either header; ``None`` without one."""
        bearer = self.headers.get("authorization", "")
        return self.headers.get("x-api-key") or bearer.removeprefix("Bearer ") or None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        json: the body as data; decimals are written as numbers.
        body: the body as it is, in place of ``json``.
    """

    status: int = 200
    json: Any = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The request arrives and the connection drops before the answer is whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """The request stands still until ``release`` is set, and is then answered as usual.

    Attributes:
        reached: set when a request stands here.
        release: set it to let the request go on.
    """

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def stand(self) -> None:
        """Wait here."""
        self.reached.set()
        await self.release.wait()


Ordered = Answer | Lost | Hold


class StandIn(ABC):
    """A vendor on this machine, as an ASGI application.

    Args:
        key: the API key it takes.
    """

    name: str

    def __init__(self, key: str) -> None:
        self.requests: list[Received] = []
        """Every request so far, in order."""
        self._key = key
        self._ordered: deque[Ordered] = deque()
        self._holds: list[Hold] = []

    @abstractmethod
    def answer(self, request: Received) -> Answer:
        """What the vendor documents for this request."""

    def then(self, *ordered: Ordered) -> None:
        """Answer the next requests like this."""
        self._ordered.extend(ordered)
        self._holds.extend(each for each in ordered if isinstance(each, Hold))

    def release_all(self) -> None:
        """Let everything go on that stands still."""
        for hold in self._holds:
            hold.release.set()

    def knows(self, request: Received) -> bool:
        """Whether the request carries the key."""
        return request.key == self._key

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            raise ValueError(f"{self.name} speaks HTTP alone, not {scope['type']}")
        request = await _received(scope, receive)
        headers = {name: value for name, value in request.headers.items() if name not in _CREDENTIALS}
        self.requests.append(replace(request, headers=headers))
        ordered = self._ordered.popleft() if self._ordered else None
        if isinstance(ordered, Hold):
            await ordered.stand()
        if isinstance(ordered, Lost):
            await _start(send, 200, {"content-type": "application/json", "content-length": "1000"})
            return  # the server drops a connection whose response was not completed
        await _whole(send, ordered if isinstance(ordered, Answer) else self.answer(request))


class StandInServer(LoopbackServer):
    """``async with StandInServer(stand_in) as server`` answers at ``server.url`` until the block ends."""

    def __init__(self, stand_in: StandIn, *, port: int = 0) -> None:
        super().__init__(stand_in, name=f"local {stand_in.name}", port=port, release=stand_in.release_all, grace_s=1)


async def _received(scope: MutableMapping[str, Any], receive: Receive) -> Received:
    parts = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return Received(
        method=scope["method"],
        path=scope["path"],
        query=dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True)),
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        raw=b"".join(parts),
    )


async def _whole(send: Send, answer: Answer) -> None:
    body = answer.body if answer.body is not None else json.dumps(answer.json, default=_number).encode()
    headers = {"content-type": "application/json", **answer.headers, "content-length": str(len(body))}
    await _start(send, answer.status, headers)
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


def _number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")
