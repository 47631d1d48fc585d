"""A server over streamable HTTP: the SDK speaks the protocol, every byte goes through a transport of ours.

The transport judges each address before it connects, follows no redirect, puts the credential in, bounds what comes back, and keeps a
failure to the one exchange it belongs to: the SDK would end the whole session over a dropped connection and lose an answer's status.
"""

import functools
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx
import httpx2
from mcp.client.streamable_http import streamable_http_client

from agentic.contract.errors import AgenticError, StorageUnavailable
from agentic.services.mcp.authentication import Authenticator
from agentic.services.mcp.config_check import Permits, origin_of
from agentic.services.mcp.failures import TRACE, RemoteFailure, Trace, Trouble
from agentic.services.mcp.streams import QUICK, Reader, Writer
from agentic.services.tools.handlers import egress
from agentic.services.tools.handlers.errors import DefiniteRefusal, EgressRefused

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
MAX_STREAM_BYTES: Final = 32 * 1024 * 1024
"""Of the whole stream one answer comes in, whatever else the server says in it."""
CONNECT_TIMEOUT_S: Final = 10.0
QUICK_TIMEOUT_S: Final = 2.0
"""For what nobody waits for, a cancellation's note or the end of a session: it stands before the next request."""
MAX_RESUMES: Final = 4
_BACKSTOP_S: Final = 5.0
"""Beyond the longest request; a read that ends by it ends one exchange."""
_SESSION: Final = "mcp-session-id"
_FIRST_BYTE_EVENTS: Final = frozenset({"http11.send_request_headers.started"})
_BAD_GATEWAY: Final = 502


class HttpWire:
    """What the SDK reads from and writes to, and what its transport knows."""

    def __init__(self, read: Reader, write: Writer) -> None:
        self._read = read
        self._write = write

    @property
    def fault(self) -> Trouble | None:
        """A fault of one exchange is told by its trace."""
        return None

    def stderr_tail(self) -> str | None:
        """There is none."""
        return None

    def kill(self) -> None:
        """Nothing is left of a socket but its descriptor, which goes with the session."""

    async def receive(self) -> Any:
        """The next message."""
        return await self._read.receive()

    async def send(self, item: Any, /) -> None:
        """Send one message."""
        await self._write.send(item)

    async def aclose(self) -> None:
        """Nothing: who opened the wire closes both sides, the writing one after the last note of a cancellation."""


@asynccontextmanager
async def http_wire(
    url: str,
    authentication: Authenticator,
    *,
    permits: Permits,
    request_s: float,
    max_body_bytes: int = MAX_BODY_BYTES,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[HttpWire]:
    """Stand ready to talk to a server; nothing is sent before the handshake.

    Args:
        permits: the deployment's egress allow-list.
        request_s: the longest wait for an answer, in seconds.
        max_body_bytes: of one answer, and of one event of a stream.
        tls: trust of a private authority; ``None`` trusts the packaged public ones.

    Raises:
        RemoteFailure: the address is not one we may talk to.
    """
    try:
        origin = origin_of(url)
    except EgressRefused as refused:
        raise RemoteFailure(Trouble.EGRESS, str(refused)) from None
    if not permits(origin):
        raise RemoteFailure(Trouble.EGRESS, f"the egress allow-list does not let {origin.text} through")
    contained = Contained(
        origin, authentication, read_s=request_s + _BACKSTOP_S, max_body_bytes=max_body_bytes, tls=tls or _trust()
    )
    async with httpx2.AsyncClient(transport=contained, trust_env=False, follow_redirects=False) as client:
        try:
            # its own goodbye would wait for as long as the server likes
            async with streamable_http_client(
                url, http_client=client, terminate_on_close=False, max_sse_event_size=max_body_bytes
            ) as (read, write):
                try:
                    yield HttpWire(read, write)
                finally:
                    with anyio.CancelScope(shield=True):
                        await write.aclose()
                        await read.aclose()
        finally:
            if contained.session_id is not None:
                with anyio.move_on_after(QUICK_TIMEOUT_S, shield=True), suppress(httpx2.HTTPError):
                    await client.delete(url, headers={_SESSION: contained.session_id})


class Contained(httpx2.AsyncBaseTransport):
    """Reaches one origin. A failure becomes the answer of the exchange it happened in, and its kind stands in the exchange's trace."""

    def __init__(
        self,
        origin: egress.Origin,
        authentication: Authenticator,
        *,
        read_s: float,
        max_body_bytes: int,
        tls: ssl.SSLContext,
    ) -> None:
        self._origin = origin
        self._authentication = authentication
        self._read_s = read_s
        self._max_body = max_body_bytes
        # a kept connection may die unseen, and a call that went into it would end unknown where a fresh one is refused cleanly
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)
        self.session_id: str | None = None
        """What the server calls this session."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and take its answer, whatever either does."""
        trace = TRACE.get() or Trace()
        if not QUICK.get():
            return await self._exchange(request, trace)
        with anyio.move_on_after(QUICK_TIMEOUT_S):
            return await self._exchange(request, Trace())
        return httpx2.Response(202, request=request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()

    async def _exchange(self, request: httpx2.Request, trace: Trace) -> httpx2.Response:
        if request.method == "GET" and "last-event-id" in request.headers:
            trace.resumes += 1
            if trace.resumes > MAX_RESUMES:
                return _failed(request, trace, Trouble.DISCONNECTED)
        try:
            response = await self._send(request, trace)
            return await self._taken(request, response, trace)
        except RemoteFailure as failure:
            return _failed(request, trace, failure.trouble)
        except EgressRefused:
            return _failed(request, trace, Trouble.EGRESS)
        except (httpx2.TransportError, DefiniteRefusal):
            return _failed(request, trace, Trouble.DISCONNECTED if trace.sent else Trouble.CONNECT)
        except StorageUnavailable:
            return _failed(request, trace, Trouble.CONNECT)
        except AgenticError:
            return _failed(request, trace, Trouble.UNAUTHORIZED)  # the vault has no credential under the reference

    async def _send(self, request: httpx2.Request, trace: Trace) -> httpx2.Response:
        found = await egress.addresses(self._origin)
        trace.credential = await self._authentication.headers()
        trace.had_session = _SESSION in request.headers
        # a stream that is taken up again belongs to a request that was sent
        trace.sent = trace.sent and request.method == "GET"
        trace.net, trace.status, trace.ended = None, None, False
        for address in found:
            try:
                return await self._inner.handle_async_request(self._at(request, address, trace))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == found[-1]:
                    raise
        raise RemoteFailure(Trouble.CONNECT, f"{self._origin.host}: the name has no address")

    def _at(self, request: httpx2.Request, address: str, trace: Trace) -> httpx2.Request:
        """The same request, connecting to a judged address; Host header, SNI and certificate check keep the name."""

        async def watch(event: str, info: dict[str, Any]) -> None:
            trace.sent = trace.sent or event in _FIRST_BYTE_EVENTS

        headers = httpx2.Headers([(k, v) for k, v in request.headers.raw if k.lower() not in _OURS])
        headers["accept-encoding"] = "identity"
        headers["user-agent"] = "agentic"
        headers.update(trace.credential)
        read_s = None if request.method == "GET" else self._read_s
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=headers,
            stream=request.stream,
            extensions={
                "trace": watch,
                "sni_hostname": self._origin.host,
                "timeout": {"connect": CONNECT_TIMEOUT_S, "read": read_s, "write": self._read_s, "pool": None},
            },
        )

    async def _taken(self, request: httpx2.Request, response: httpx2.Response, trace: Trace) -> httpx2.Response:
        trace.status = response.status_code
        trouble = _refusable(response)
        if trouble is None and request.method == "POST" and not QUICK.get() and not _answers(response):
            trouble = Trouble.PROTOCOL
        if trouble is not None:
            await response.aclose()
            return _failed(request, trace, trouble)
        if response.status_code == 401:
            # to a credential that expired or was revoked the protocol's servers say the same, and there it means only that
            challenge = response.headers.get("www-authenticate", "")
            trace.interactive = "resource_metadata=" in challenge and not trace.credential
        if response.status_code < 400 and (session := response.headers.get(_SESSION)):
            self.session_id = session
        if response.status_code < 400 and _is_stream(response):
            limit = MAX_STREAM_BYTES if request.method == "POST" else None
            return _answer(request, response, stream=_Stream(response, trace, limit))
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._max_body:
                    return _failed(request, trace, Trouble.TOO_LARGE)
        finally:
            await response.aclose()
        return _answer(request, response, content=bytes(body))


class _Stream(httpx2.AsyncByteStream):
    """The events of one answer, as they come."""

    def __init__(self, response: httpx2.Response, trace: Trace, limit: int | None) -> None:
        self._response = response
        self._trace = trace
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        try:
            async for chunk in self._response.aiter_raw():
                seen += len(chunk)
                if self._limit is not None and seen > self._limit:
                    self._trace.net = Trouble.TOO_LARGE
                if self._trace.abandoned or self._trace.net is not None:
                    return
                yield chunk
        except httpx2.TransportError:
            self._trace.net = Trouble.DISCONNECTED
            return
        self._trace.ended = True

    async def aclose(self) -> None:
        await self._response.aclose()


_OURS: Final = frozenset({b"accept-encoding", b"user-agent", b"cookie", b"authorization"})


def _refusable(response: httpx2.Response) -> Trouble | None:
    if 300 <= response.status_code < 400:
        return Trouble.REDIRECTED
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return Trouble.PROTOCOL  # a small body can unpack to any size
    return None


def _answers(response: httpx2.Response) -> bool:
    """Whether this can hold the answer to a request, or is an error whose status says enough."""
    media_type = response.headers.get("content-type", "").lower()
    return response.status_code >= 400 or (
        response.status_code < 300 and media_type.startswith(("application/json", "text/event-stream"))
    )


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def _answer(request: httpx2.Request, response: httpx2.Response, **body: Any) -> httpx2.Response:
    dropped = (b"content-length", b"transfer-encoding", b"set-cookie")
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in dropped]
    return httpx2.Response(response.status_code, request=request, headers=headers, **body)


def _failed(request: httpx2.Request, trace: Trace, trouble: Trouble) -> httpx2.Response:
    """An answer that ends this one exchange in the SDK as an error of the protocol's kind."""
    trace.net = trouble
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": trouble}}
    return httpx2.Response(
        _BAD_GATEWAY,
        request=request,
        headers={"content-type": "application/json"},
        content=json.dumps(body).encode(),
    )


@functools.cache
def _trust() -> ssl.SSLContext:
    # the packaged authorities, as everything else here trusts them; reading them takes tens of milliseconds
    return httpx.create_ssl_context(trust_env=False)
