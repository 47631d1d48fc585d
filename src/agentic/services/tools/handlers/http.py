"""The governed HTTP client of vendor handlers: one origin, one deadline, and the moment the first byte may leave.

Built on httpx's transport, not on its client: a client follows redirects, keeps cookies between calls, reads proxies from the
environment and logs whole URLs. Judging addresses is ``egress``'s job, reading a status the vendor handler's.
"""

import asyncio
import functools
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from agentic.contract.clock import Clock, SystemClock
from agentic.services.tools.handlers import egress
from agentic.services.tools.handlers.errors import OutcomeUnknown, RetryableUpstreamError, UpstreamUnavailableError
from agentic.services.tools.handlers.reply import Reply

DEFAULT_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
"""For one address, so that a dead one leaves time for the next."""
MAX_BODY_BYTES = 4 * 1024 * 1024
FRAMING = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""Headers that only the client sets, from the origin and the body."""

_FIRST_BYTE_EVENTS = frozenset({"http11.send_request_headers.started", "http2.send_request_headers.started"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")


class GovernedClient:
    """Sends requests to one origin. Made for one call, closed with it: ``async with GovernedClient(...) as client``.

    Args:
        origin: such as ``https://api.vendor.example``; the only one this client reaches. Plain ``http`` for loopback alone.
        headers: sent with every request.
        auth: awaited once per request, for the headers that authenticate it: ``ctx.connection.authorize``. What it raises passes
            through and nothing is sent.
        before_first_byte: awaited once per request, after the connection exists (TLS included) and before a byte of the request
            can leave; what it raises passes through and nothing is sent. ``None`` for reads.
        deadline: second on ``clock.monotonic()`` by which the answer must be whole, resolution and connection included;
            ``None`` gives each request ``DEFAULT_TIMEOUT_S``.
        max_body_bytes: how much of an answer is read.
        clock: what ``deadline`` is measured on.
        tls: trust of a private authority; ``None`` trusts the packaged public ones. The environment is not asked.

    Raises:
        EgressRefused: the origin is not one a vendor client may have.
        ValueError: a header that HTTP cannot carry; names it, not its value.

    Source: ADR 0008 (``watermark="at_transport"``), J7, B2.
    """

    def __init__(
        self,
        *,
        origin: str,
        headers: Mapping[str, str] | None = None,
        auth: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
        before_first_byte: Callable[[], Awaitable[None]] | None = None,
        deadline: float | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._origin = egress.Origin.parse(origin)
        self._headers = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "agentic"} | _checked(
            headers or {}
        )
        self._auth = auth
        self._before_first_byte = before_first_byte
        self._deadline = deadline
        self._max_body_bytes = max_body_bytes
        self._clock = clock or SystemClock()
        self._transport = httpx.AsyncHTTPTransport(
            verify=tls or _public_trust(),
            trust_env=False,
            # A kept connection may die unseen; the next request would then end unknown where a fresh one is refused cleanly.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what is open. A request in flight is cut off."""
        await self._transport.aclose()

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Reply:
        """Read ``path`` (with its query, escaped by the caller). Raises as ``post_bytes`` does."""
        return await self._exchange("GET", path, None, headers)

    async def post_bytes(self, path: str, body: bytes, *, headers: Mapping[str, str] | None = None) -> Reply:
        """Post exactly these bytes, so that a repeat under the same key is the same request (J7).

        Args:
            path: below the origin, with its query; an absolute URL of the same origin is taken too.
            body: sent as it is.
            headers: of this request, over the client's own.

        Returns:
            The answer, whatever its status.

        Raises:
            EgressRefused: the path leads elsewhere, or the host to an address inside this network. Nothing was sent.
            UpstreamUnavailableError: no such host, or its certificate is not trusted. Nothing was sent.
            RetryableUpstreamError: not resolved, not connected, or out of time before the first byte. Nothing was sent.
            OutcomeUnknown: bytes may have left and no whole answer came.
        """
        return await self._exchange("POST", path, body, headers)

    async def _exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None) -> Reply:
        url = self._origin.url(path)
        allowed_s = DEFAULT_TIMEOUT_S if self._deadline is None else self._deadline - self._clock.monotonic()
        sent_to = f"{method} {self._origin.text}"
        if allowed_s <= 0:
            raise RetryableUpstreamError(f"{sent_to}: the deadline had passed before the request; nothing was sent")
        gate = _Gate(self._before_first_byte)
        own = _checked(headers or {})
        untrusted = False
        try:
            async with asyncio.timeout(allowed_s) as limit:
                return await self._send(await self._request(method, url, body, own), gate)
        except TimeoutError:
            if not limit.expired():
                raise
            ending = "no answer before the deadline"
        except httpx.TransportError as problem:
            untrusted = _caused_by(problem, ssl.SSLCertVerificationError)
            ending = type(problem).__name__
        # Raised out here, without a cause: what httpx and h11 say can quote a header, and a chain would carry it on (B2).
        if gate.opened:
            raise OutcomeUnknown(f"{sent_to}: sent, then {ending}; it may have taken effect", status=gate.status)
        if untrusted:
            raise UpstreamUnavailableError(f"{sent_to}: its certificate is not trusted; nothing was sent")
        raise RetryableUpstreamError(f"{sent_to}: {ending} while connecting; nothing was sent")

    async def _request(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> httpx.Request:
        # the credential is no variable of a frame that an error of the exchange would carry on (B2)
        authenticating = _checked(await self._auth()) if self._auth is not None else {}
        return httpx.Request(method, url, headers={**self._headers, **headers, **authenticating}, content=body)

    async def _send(self, request: httpx.Request, gate: "_Gate") -> Reply:
        found = await egress.addresses(self._origin)
        for address in found:
            try:
                response = await self._transport.handle_async_request(_at(request, address, self._origin.host, gate))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if address == found[-1]:
                    raise
                continue
            gate.status = response.status_code
            return await self._read(response)
        raise UpstreamUnavailableError(f"{self._origin.host}: the name has no address")

    async def _read(self, response: httpx.Response) -> Reply:
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._max_body_bytes:
                    break
        finally:
            await response.aclose()
        return Reply(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body[: self._max_body_bytes]),
            truncated=len(body) > self._max_body_bytes,
        )


class _Gate:
    """Stands between the connection and the first byte of one request; knows on which side of it a failure fell."""

    def __init__(self, before_first_byte: Callable[[], Awaitable[None]] | None) -> None:
        self._before_first_byte = before_first_byte
        self.opened = False
        self.status: int | None = None

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """Httpcore awaits this for each of its steps; a header step has started when its bytes are not yet written."""
        if event not in _FIRST_BYTE_EVENTS or self.opened:
            return
        if self._before_first_byte is not None:
            await self._before_first_byte()
        self.opened = True


def _at(request: httpx.Request, address: str, host: str, gate: _Gate) -> httpx.Request:
    """The same request, connecting to a judged address; Host header, SNI and certificate check keep the name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={
            "trace": gate.trace,
            "sni_hostname": host,
            "timeout": {"connect": CONNECT_TIMEOUT_S, "read": None, "write": None, "pool": None},
        },
    )


def _caused_by(problem: BaseException, kind: type[BaseException]) -> bool:
    seen: BaseException | None = problem
    while seen is not None:
        if isinstance(seen, kind):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Lower-cased and fit for the wire, so that h11 never has a reason to quote one in an error."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError("a header's name holds characters HTTP does not allow")
        if name.lower() in FRAMING:
            raise ValueError(f"header {name}: the client sets it, from the origin and the body")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"header {name}: its value must be printable ASCII without surrounding blanks or line breaks"
            )
    return {name.lower(): value for name, value in headers.items()}


@functools.cache
def _public_trust() -> ssl.SSLContext:
    # Reading the authorities takes tens of milliseconds; once per process is enough.
    return httpx.create_ssl_context(trust_env=False)
