"""What passes between a transport and the SDK: a server's questions are counted and bounded, its chatter dropped, our traces kept in.

The SDK starts a task for each notification and each request of a server, without a bound, and puts the caller's trace context and
baggage into every request. Both end here.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from agentic.services.mcp.failures import Trouble

MAX_UNANSWERED: Final = 64
"""Questions of a server that our side has not answered yet; more at once is a flood."""
ASKED_OF_CLIENTS: Final = frozenset({"sampling/createMessage", "roots/list", "elicitation/create"})
"""What the protocol lets a server ask of a client, and nobody gets from us."""
_TRACE_KEYS: Final = ("traceparent", "tracestate", "baggage")
_LIST_CHANGED: Final = "notifications/tools/list_changed"

QUICK: ContextVar[bool] = ContextVar("quick", default=False)
"""Set while a message is sent that nobody waits for an answer to: over HTTP it must not hold up what comes after it."""


class Reader(Protocol):
    """The transport's side we read from."""

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class Writer(Protocol):
    """The transport's side we write to."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


@dataclass(kw_only=True, slots=True)
class Heard:
    """What a server said without being asked."""

    list_changed: int = 0
    """How often it announced another list of tools: recorded, not applied."""
    refused: dict[str, int] = field(default_factory=dict)
    """Requests of the server to us, by method, `other` for what the protocol does not know. The SDK refuses each; pings it answers."""
    on_refused: Callable[[str], None] = lambda method: None
    """Told the method of each."""
    unanswered: int = 0
    fault: Trouble | None = None

    def admit(self, message: JSONRPCMessage) -> bool:
        """Whether a message goes on to the SDK.

        Raises:
            anyio.EndOfStream: the server has flooded us; the session is over.
        """
        if isinstance(message, JSONRPCNotification):
            self.list_changed += message.method == _LIST_CHANGED
            return False
        if isinstance(message, JSONRPCRequest):
            self.unanswered += 1
            if self.unanswered > MAX_UNANSWERED:
                self.fault = Trouble.FLOODED
                raise anyio.EndOfStream
            if message.method != "ping":
                method = message.method if message.method in ASKED_OF_CLIENTS else "other"
                self.refused[method] = self.refused.get(method, 0) + 1
                self.on_refused(method)
        return True


class Incoming:
    """The reading side as the SDK sees it."""

    def __init__(self, inner: Reader, heard: Heard, *, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._heard = heard
        self._ended = ended

    @property
    def last_context(self) -> None:
        """A server's message has no context of ours."""
        return None

    async def receive(self) -> SessionMessage | Exception:
        """The next message that is the SDK's business."""
        try:
            while True:
                item = await self._inner.receive()
                if isinstance(item, Exception) or self._heard.admit(item.message):
                    return item
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        """Close it."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Outgoing:
    """The writing side as the SDK sees it."""

    def __init__(self, inner: Writer, heard: Heard) -> None:
        self._inner = inner
        self._heard = heard

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message without what our side knows of the caller."""
        message = item.message
        answers = isinstance(message, JSONRPCResponse | JSONRPCError)
        if isinstance(message, JSONRPCRequest | JSONRPCNotification) and message.params is not None:
            _strip(message)
        token = QUICK.set(not isinstance(message, JSONRPCRequest))
        try:
            await self._inner.send(item)
        finally:
            QUICK.reset(token)
            self._heard.unanswered -= answers

    async def aclose(self) -> None:
        """Close it."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _strip(message: JSONRPCRequest | JSONRPCNotification) -> None:
    params = message.params or {}
    meta = params.get("_meta")
    if isinstance(meta, dict) and not meta.keys().isdisjoint(_TRACE_KEYS):
        left = {name: value for name, value in meta.items() if name not in _TRACE_KEYS}
        others = {name: value for name, value in params.items() if name != "_meta"}
        message.params = {**others, "_meta": left} if left else others
