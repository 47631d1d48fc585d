"""What the provider is told to answer, request by request, and what it was asked."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCall:
    """One tool call of an answer.

    Attributes:
        name: as the model writes it, known or not.
        arguments: the raw text, sound or not.
        id: ``None`` leaves it out, as some providers do.
        type: ``None`` leaves it out likewise.
        index: its number on the wire; ``None`` for its place among the calls.
    """

    name: str
    arguments: str = "{}"
    id: str | None = None
    type: str | None = "function"
    index: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens an answer reports."""

    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 64
    reasoning_tokens: int = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """A point where the provider falls silent until ``release`` is set.

    Attributes:
        after: number of events sent before it.
        reached: set when a request stands here.
        release: set it to let the answer go on.
    """

    after: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def stand(self) -> None:
        """Wait here."""
        self.reached.set()
        await self.release.wait()


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """How a streamed answer travels.

    Attributes:
        piece_chars: characters of text or arguments in one event; small ones split inside JSON tokens.
        packet_bytes: bytes in one packet, small ones split inside characters; ``None`` sends event by event.
        interleaved: the calls' arguments come in turns, a piece of each, rather than call after call.
        cut_after: the connection is dropped after this many events; ``None`` for never.
        hold: where it falls silent.
        raw: bytes sent before the event of this number, as they are.
        usage_so_far: every event reports the usage so far, as some servers do, and not the last one alone.
    """

    piece_chars: int = 8
    packet_bytes: int | None = None
    interleaved: bool = False
    cut_after: int | None = None
    hold: Hold | None = None
    raw: Mapping[int, bytes] = field(default_factory=dict)
    usage_so_far: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer of the model.

    Attributes:
        text: its words.
        calls: its tool calls, in order.
        finish: why it stopped, in the words of chat completions: ``length``, ``content_filter``; ``""`` for whole, and ``None`` for
            a stream that ends without saying so.
        usage: ``None`` when the provider reports none.
    """

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    finish: str | None = ""
    usage: Usage | None = field(default_factory=Usage)
    wire: Wire = field(default_factory=Wire)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An error in place of an answer.

    Attributes:
        code: the provider's own word for it, such as ``context_length_exceeded``.
        retry_after: the header as it is sent, seconds or a date; ``None`` leaves it out.
        body: the whole body in place of the usual JSON.
    """

    status: int
    message: str = "the provider refuses"
    code: str | None = None
    retry_after: str | None = None
    body: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request as it arrived; credentials are not kept."""

    path: str
    raw: bytes
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The history it carries, whichever of the two formats it has."""
        return list(self.body.get("messages") or self.body.get("input") or [])


Reply = Answer | Refusal | Callable[[Request], "Answer | Refusal"]
"""What answers one request: a value, or a function of the request."""


class ModelScript:
    """Replies in the order they are given out. A request past the end is refused for good, and says so."""

    def __init__(self, *replies: Reply) -> None:
        self._waiting = deque(replies)
        self._holds: list[Hold] = []
        self.requests: list[Request] = []
        """Every request so far, refused ones too."""

    @property
    def left(self) -> int:
        """How many replies nobody has asked for."""
        return len(self._waiting)

    def add(self, *replies: Reply) -> None:
        """Answer these after the others."""
        self._waiting.extend(replies)

    def take(self, request: Request) -> Answer | Refusal:
        """Note the request, and hand out its reply."""
        self.requests.append(request)
        if not self._waiting:
            return Refusal(status=422, message=f"the script is at its end; this is request {len(self.requests)}")
        reply = self._waiting.popleft()
        given = reply if isinstance(reply, Answer | Refusal) else reply(request)
        if isinstance(given, Answer) and given.wire.hold is not None:
            self._holds.append(given.wire.hold)
        return given

    def release_all(self) -> None:
        """Let everything go on that stands still."""
        for hold in self._holds:
            hold.release.set()
