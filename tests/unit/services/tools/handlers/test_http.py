import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agentic.services.tools.handlers.errors import (
    EgressRefused,
    OutcomeUnknown,
    RetryableUpstreamError,
    UpstreamUnavailableError,
)
from agentic.services.tools.handlers.http import GovernedClient

PATIENCE_S = 5.0


class Wire:
    """What arrived, in order of arrival."""

    def __init__(self) -> None:
        self.connections = 0
        self.connected = asyncio.Event()
        self.requests: list[bytes] = []
        self.received = asyncio.Event()
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(body: bytes = b"{}", status: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP/1.1 answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def wire(
    reply: bytes | None, *, close: bool = False, hold: asyncio.Event | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Wire]:
    """Serve on loopback: read one request, then send ``reply`` (``None``: say nothing).

    Args:
        close: cut the connection after the reply instead of waiting for the client.
        hold: awaited before anything is read, so that a test can look at the silence before it.
    """
    seen = Wire()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        seen.connected.set()
        try:
            if hold is not None:
                await hold.wait()
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ),
                0,
            )
            seen.requests.append(head + await reader.readexactly(length))
            seen.received.set()
            if reply is not None:
                writer.write(reply)
                await writer.drain()
            if not close:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()


SECRET = "sk-very-secret-0001"
AUTH = {"authorization": f"Bearer {SECRET}"}


class Watermark:
    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1


def soon(seconds: float = PATIENCE_S) -> float:
    return time.monotonic() + seconds


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.guarantee("J3")
async def test_the_watermark_is_awaited_after_the_connection_and_before_any_byte() -> None:
    silent_at_watermark: list[bool] = []

    async with wire(answer()) as server:

        async def before_first_byte() -> None:
            await asyncio.wait_for(server.connected.wait(), PATIENCE_S)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(server.received.wait(), 0.1)
            silent_at_watermark.append(not server.requests)

        async with GovernedClient(origin=server.origin, before_first_byte=before_first_byte, deadline=soon()) as client:
            await client.post_bytes("/send", b"one")

    assert silent_at_watermark == [True]
    assert server.requests[0].endswith(b"one")


@pytest.mark.guarantee("J3")
async def test_not_even_a_partial_request_line_leaves_while_the_watermark_is_being_written() -> None:
    first_bytes: list[bytes] = []
    arrived = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first_bytes.append(await reader.read(65536))
        arrived.set()
        writer.write(answer())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen: list[int] = []

    async def before_first_byte() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(arrived.wait(), 0.1)
        seen.append(len(first_bytes))

    port = server.sockets[0].getsockname()[1]
    async with server, GovernedClient(origin=f"http://127.0.0.1:{port}", before_first_byte=before_first_byte) as client:
        await client.get("/")
    assert seen == [0]
    assert first_bytes[0].startswith(b"GET / HTTP/1.1\r\n")


@pytest.mark.guarantee("J3")
async def test_a_watermark_that_cannot_be_written_stops_the_request_and_passes_its_error_on() -> None:
    async def before_first_byte() -> None:
        raise LookupError("the claim was lost")

    async with (
        wire(answer()) as server,
        GovernedClient(origin=server.origin, before_first_byte=before_first_byte) as client,
    ):
        with pytest.raises(LookupError):
            await client.post_bytes("/send", b"one")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.received.wait(), 0.1)
    assert server.requests == []


async def test_a_refused_connection_is_a_retryable_refusal_and_never_sets_the_watermark() -> None:
    watermark = Watermark()
    async with GovernedClient(origin=f"http://127.0.0.1:{free_port()}", before_first_byte=watermark) as client:
        with pytest.raises(RetryableUpstreamError, match="nothing was sent"):
            await client.post_bytes("/send", b"one")
    assert watermark.calls == 0


async def test_a_server_that_speaks_no_tls_never_sets_the_watermark() -> None:
    watermark = Watermark()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, GovernedClient(origin=f"https://127.0.0.1:{port}", before_first_byte=watermark) as client:
        with pytest.raises(RetryableUpstreamError, match="while connecting"):
            await client.post_bytes("/send", b"one")
    assert watermark.calls == 0


async def test_an_untrusted_certificate_is_no_matter_of_waiting_and_never_sets_the_watermark(tmp_path: Path) -> None:
    watermark = Watermark()
    serving, _ = authority(tmp_path)
    async with wire(answer(), tls=serving) as server:
        origin = f"https://127.0.0.1:{server.port}"
        async with GovernedClient(origin=origin, before_first_byte=watermark) as client:
            with pytest.raises(UpstreamUnavailableError, match="certificate"):
                await client.post_bytes("/send", b"one")
    assert watermark.calls == 0
    assert server.requests == []


@pytest.mark.guarantee("J3")
async def test_the_watermark_comes_after_the_tls_handshake(tmp_path: Path) -> None:
    watermark = Watermark()
    serving, trusting = authority(tmp_path)
    async with wire(answer(b"safe"), tls=serving) as server:
        origin = f"https://localhost:{server.port}"
        async with GovernedClient(origin=origin, before_first_byte=watermark, tls=trusting, deadline=soon()) as client:
            reply = await client.post_bytes("/send", b"one")
    assert (reply.body, watermark.calls) == (b"safe", 1)


async def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    watermark = Watermark()
    serving, trusting = authority(tmp_path)
    async with wire(answer(), tls=serving) as server:
        origin = f"https://127.0.0.1:{server.port}"
        async with GovernedClient(origin=origin, before_first_byte=watermark, tls=trusting, deadline=soon()) as client:
            with pytest.raises(UpstreamUnavailableError, match="certificate"):
                await client.post_bytes("/send", b"one")
    assert (watermark.calls, server.requests) == (0, [])


async def test_an_address_that_refuses_gives_way_to_the_next_and_the_watermark_is_set_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watermark = Watermark()
    async with wire(answer()) as server:

        async def two(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        origin = f"http://localhost:{server.port}"
        async with GovernedClient(origin=origin, before_first_byte=watermark, deadline=soon()) as client:
            reply = await client.post_bytes("/send", b"one")
    assert (reply.status, watermark.calls, len(server.requests)) == (200, 1, 1)


@pytest.mark.guarantee("J7")
async def test_a_repeat_is_the_same_bytes_under_its_own_watermark() -> None:
    watermark = Watermark()
    async with (
        wire(answer(), close=True) as server,
        GovernedClient(origin=server.origin, headers=AUTH, before_first_byte=watermark, deadline=soon()) as client,
    ):
        for _ in range(2):
            await client.post_bytes("/send?x=1", b'{"a":1}', headers={"Idempotency-Key": "k1"})
    assert server.requests[0] == server.requests[1]
    assert b"idempotency-key: k1\r\n" in server.requests[0].lower()
    assert f"host: 127.0.0.1:{server.port}".encode() in server.requests[0].lower()
    assert (watermark.calls, server.connections) == (2, 2)


async def test_silence_after_the_request_ends_unknown_at_the_deadline() -> None:
    async with wire(None) as server, GovernedClient(origin=server.origin, deadline=soon(0.2)) as client:
        started = time.monotonic()
        with pytest.raises(OutcomeUnknown, match="deadline"):
            await client.post_bytes("/send", b"one")
    assert time.monotonic() - started < 2


async def test_an_answer_that_trickles_cannot_outlive_the_deadline() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        try:
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, GovernedClient(origin=f"http://127.0.0.1:{port}", deadline=soon(0.3)) as client:
        with pytest.raises(OutcomeUnknown) as caught:
            await client.get("/slow")
    assert caught.value.status == 200


async def test_a_deadline_that_has_passed_sends_nothing() -> None:
    watermark = Watermark()
    async with (
        wire(answer()) as server,
        GovernedClient(origin=server.origin, before_first_byte=watermark, deadline=soon(-1)) as client,
    ):
        with pytest.raises(RetryableUpstreamError, match="deadline"):
            await client.post_bytes("/send", b"one")
    assert (watermark.calls, server.connections) == (0, 0)


async def test_a_deadline_that_passes_while_the_watermark_is_written_sends_nothing() -> None:
    never = asyncio.Event()

    async def before_first_byte() -> None:
        await never.wait()

    async with (
        wire(answer()) as server,
        GovernedClient(origin=server.origin, before_first_byte=before_first_byte, deadline=soon(0.2)) as client,
    ):
        with pytest.raises(RetryableUpstreamError, match="nothing was sent"):
            await client.post_bytes("/send", b"one")
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "status"),
    [(b"", None), (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", 200), (b"garbage\r\n\r\n", None)],
    ids=["closed", "cut off", "not http"],
)
async def test_a_connection_that_dies_after_the_request_ends_unknown(reply: bytes, status: int | None) -> None:
    async with wire(reply, close=True) as server, GovernedClient(origin=server.origin, deadline=soon()) as client:
        with pytest.raises(OutcomeUnknown) as caught:
            await client.post_bytes("/send", b"one")
    assert caught.value.status == status
    assert len(server.requests) == 1


async def test_a_cancelled_request_is_cancelled_and_leaves_no_connection() -> None:
    async with wire(None) as server, GovernedClient(origin=server.origin, deadline=soon()) as client:
        task = asyncio.create_task(client.post_bytes("/send", b"one"))
        await asyncio.wait_for(server.received.wait(), PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_an_answer_over_the_cap_is_cut_and_says_so() -> None:
    async with (
        wire(answer(b"x" * 300_000)) as server,
        GovernedClient(origin=server.origin, max_body_bytes=1000, deadline=soon()) as client,
    ):
        reply = await client.get("/big")
    assert (reply.status, reply.body, reply.truncated) == (200, b"x" * 1000, True)


async def test_an_answer_at_the_cap_is_whole() -> None:
    async with (
        wire(answer(b"x" * 1000)) as server,
        GovernedClient(origin=server.origin, max_body_bytes=1000, deadline=soon()) as client,
    ):
        reply = await client.get("/exact")
    assert (len(reply.body), reply.truncated) == (1000, False)


async def test_a_request_is_authenticated_anew_and_the_watermark_comes_after_that() -> None:
    order: list[str] = []

    async def auth() -> dict[str, str]:
        order.append("auth")
        return {"Authorization": f"Bearer token-{len(order)}"}

    async def watermark() -> None:
        order.append("watermark")

    async with wire(answer()) as seen, GovernedClient(origin=seen.origin, auth=auth, before_first_byte=watermark) as to:
        await to.post_bytes("/x", b"1")
        await to.post_bytes("/x", b"1")
    assert order == ["auth", "watermark", "auth", "watermark"]
    assert [b"authorization: Bearer token-1" in seen.requests[0], b"Bearer token-3" in seen.requests[1]] == [True, True]


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("ends", ["refused", "silent"])
async def test_a_request_that_cannot_be_authenticated_is_a_refusal_and_nothing_is_sent(ends: str) -> None:
    marked: list[str] = []

    async def auth() -> dict[str, str]:
        if ends == "refused":
            raise UpstreamUnavailableError("there is no token")
        await asyncio.Event().wait()
        raise AssertionError

    async def watermark() -> None:
        marked.append("watermark")

    deadline = time.monotonic() + 0.1
    async with (
        wire(answer()) as seen,
        GovernedClient(origin=seen.origin, auth=auth, before_first_byte=watermark, deadline=deadline) as client,
    ):
        with pytest.raises(UpstreamUnavailableError if ends == "refused" else RetryableUpstreamError):
            await client.post_bytes("/x", b"1")
    assert (marked, seen.connections) == ([], 0)


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with wire(answer()) as elsewhere:
        redirect = answer(b"", "307 Temporary Redirect", f"Location: {elsewhere.origin}/steal")
        async with (
            wire(redirect) as server,
            GovernedClient(origin=server.origin, headers=AUTH, deadline=soon()) as client,
        ):
            reply = await client.post_bytes("/send", b"one")
    assert reply.status == 307
    assert elsewhere.connections == 0


async def test_a_cookie_is_not_carried_into_the_next_request() -> None:
    async with (
        wire(answer(b"", "200 OK", "Set-Cookie: tenant=other"), close=True) as server,
        GovernedClient(origin=server.origin, deadline=soon()) as client,
    ):
        await client.get("/")
        await client.get("/")
    assert b"cookie" not in server.requests[1].lower()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire(answer(b"proxy")) as proxy, wire(answer(b"vendor")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        async with GovernedClient(origin=server.origin, deadline=soon()) as client:
            reply = await client.get("/")
    assert reply.body == b"vendor"
    assert proxy.connections == 0


@pytest.mark.parametrize(
    "path", ["//other.example/x", "http://127.0.0.1:1/x", "https://other.example/", "x", "/a b", "/a\r\nX: y"]
)
async def test_only_a_path_of_the_origin_is_requested(path: str) -> None:
    async with wire(answer()) as server, GovernedClient(origin=server.origin, deadline=soon()) as client:
        with pytest.raises(EgressRefused):
            await client.get(path)
    assert server.connections == 0


async def test_a_link_to_the_next_page_of_the_same_origin_is_requested() -> None:
    async with wire(answer()) as server, GovernedClient(origin=server.origin, deadline=soon()) as client:
        await client.get(f"{server.origin}/v3/messages?page_token=2")
    assert server.requests[0].startswith(b"GET /v3/messages?page_token=2 HTTP/1.1\r\n")


async def failing_text(server: Wire, client: GovernedClient) -> str:
    with pytest.raises(OutcomeUnknown) as caught:
        await client.post_bytes(f"/send?api_key={SECRET}", SECRET.encode())
    texts = []
    seen: BaseException | None = caught.value
    while seen is not None:
        texts.append(f"{seen!r} {seen.args}")
        seen = seen.__cause__ or seen.__context__
    return "\n".join(texts)


@pytest.mark.guarantee("B2")
async def test_no_secret_stands_in_an_error_its_chain_or_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with (
        wire(b"", close=True) as server,
        GovernedClient(origin=server.origin, headers=AUTH, deadline=soon()) as client,
    ):
        texts = await failing_text(server, client)
    assert SECRET in server.requests[0].decode()
    assert SECRET not in texts
    assert SECRET not in caplog.text


@pytest.mark.guarantee("B2")
async def test_a_header_that_http_cannot_carry_is_named_without_its_value() -> None:
    with pytest.raises(ValueError, match="authorization") as caught:
        GovernedClient(origin="https://api.vendor.example", headers={"authorization": f"Bearer {SECRET}\n"})
    assert SECRET not in str(caught.value)


async def test_a_name_that_leads_into_this_network_is_refused_before_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watermark = Watermark()
    async with wire(answer()) as server:
        loop = asyncio.get_running_loop()

        async def rebinding(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
            assert host == "api.vendor.example"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]

        monkeypatch.setattr(loop, "getaddrinfo", rebinding)
        origin = f"https://api.vendor.example:{server.port}"
        async with GovernedClient(origin=origin, before_first_byte=watermark, deadline=soon()) as client:
            with pytest.raises(EgressRefused, match="inside this network"):
                await client.get("/latest/meta-data")
    assert (server.connections, watermark.calls) == (0, 0)


async def test_localhost_by_name_is_reached() -> None:
    async with (
        wire(answer(b"here")) as server,
        GovernedClient(origin=f"http://localhost:{server.port}", deadline=soon()) as client,
    ):
        reply = await client.get("/")
    assert reply.body == b"here"
    assert f"host: localhost:{server.port}".encode() in server.requests[0].lower()


def authority(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A self-signed certificate for the name localhost: the server's context and one that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wire.test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "wire.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    trusting = ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode())
    return serving, trusting
