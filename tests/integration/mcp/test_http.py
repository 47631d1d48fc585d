"""Servers over HTTP: where our requests and credentials go, what a failure costs, and what is never sent a second time."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentic.services.mcp.config import Authentication, AuthScheme
from agentic.services.mcp.failures import RemoteFailure, Trouble
from tests.integration.mcp.certificates import certificate_of
from tests.integration.mcp.scripted_http import STREAM, Asked, Scripted, event, plain, scripted
from tests.integration.mcp.stage import BEARER, TOKEN, Vault, call, http_config, server_of, until

pytestmark = pytest.mark.usefixtures("nothing_left")


def tool(**answers: Any) -> Callable[[Scripted, Asked], Any]:
    """A script by the tool's name: an answer, or a function of the request."""

    def on(server: Scripted, asked: Asked) -> Any:
        answer = answers.get(asked.tool or "", ...)
        return answer(asked) if callable(answer) else answer

    return on


def text(asked: Asked, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.message["id"], "result": {"content": [{"type": "text", "text": words}]}}


async def test_a_call_goes_and_comes_the_session_is_named_and_ended() -> None:
    async with scripted() as peer:
        async with server_of(http_config(peer.url, BEARER)) as server:
            assert await call(server, "do") == "done"
        assert [asked.method for asked in peer.seen][-1] == "DELETE" and not peer.live
    assert {asked.headers.get("authorization") for asked in peer.seen} == {f"Bearer {TOKEN}"}
    assert {asked.headers["mcp-session-id"] for asked in peer.calls()} == {"s-1"}
    assert all(asked.headers["host"] == f"127.0.0.1:{peer.port}" for asked in peer.seen)


async def test_a_header_scheme_writes_its_header_and_no_other() -> None:
    auth = Authentication(scheme=AuthScheme.HEADER, credential_ref="vault:token", name="X-Api-Key")
    async with scripted() as peer, server_of(http_config(peer.url, auth)) as server:
        await call(server, "do")
        assert {asked.headers.get("x-api-key") for asked in peer.seen} == {TOKEN}
        assert not any("authorization" in asked.headers for asked in peer.seen)


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
@pytest.mark.parametrize("inside", [False, True])
async def test_no_redirect_is_followed_and_no_credential_reaches_another_origin(status: str, inside: bool) -> None:
    async with scripted() as other, scripted() as peer:
        where = "http://169.254.169.254/latest" if inside else other.url
        peer.on = tool(do=plain(status, b"", f"Location: {where}"), near=plain(status, b"", f"Location: {peer.url}2"))
        async with server_of(http_config(peer.url, BEARER)) as server:
            for name in ("do", "near"):
                with pytest.raises(RemoteFailure) as failure:
                    await call(server, name)
                assert failure.value.trouble is Trouble.REDIRECTED
            assert await call(server, "other") == "done"
    assert other.seen == [] and all(asked.path == "/mcp" for asked in peer.seen)


async def test_an_address_inside_this_network_is_not_dialled() -> None:
    for url in ("https://169.254.169.254/mcp", "https://10.0.0.1/mcp", "http://tools.vendor.example/mcp"):
        async with server_of(http_config(url)) as server:
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
        assert failure.value.trouble is Trouble.EGRESS and not failure.value.sent


async def test_a_name_that_leads_inside_is_refused_after_it_was_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", ("10.0.0.7", 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    async with server_of(http_config("https://tools.vendor.example/mcp")) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.EGRESS


async def test_what_the_allow_list_does_not_name_is_not_dialled() -> None:
    async with scripted() as peer:
        server_config = http_config(peer.url)
        async with server_of(server_config, permits=lambda origin: origin.port != peer.port) as server:
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
    assert failure.value.trouble is Trouble.EGRESS and peer.seen == []


async def test_a_server_that_cannot_be_reached_got_nothing() -> None:
    async with scripted() as peer:
        url = peer.url
    async with server_of(http_config(url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.CONNECT and failure.value.surely_without_effect


async def test_a_black_hole_costs_the_connect_timeout() -> None:
    async with (
        scripted(lambda self, asked: [self.release]) as peer,
        server_of(http_config(peer.url, connect_s=0.3)) as server,
    ):
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.CONNECT_TIMEOUT


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (None, Trouble.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", Trouble.DISCONNECTED),
        (STREAM, Trouble.DISCONNECTED),
        (STREAM + b"data: half", Trouble.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: ", Trouble.DISCONNECTED),
        (plain("500 Oh no"), Trouble.HTTP_STATUS),
        (plain("503 Busy", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Connection closed"}}', "Content-Type: application/json"), Trouble.HTTP_STATUS),
        (plain("400 Bad"), Trouble.SESSION_SUSPECT),
        (plain("404 Gone"), Trouble.SESSION_EXPIRED),
        (plain("403 No"), Trouble.FORBIDDEN),
        (plain("200 OK", b"<html>", "Content-Type: text/html"), Trouble.PROTOCOL),
        (plain("200 OK", b"{broken", "Content-Type: application/json"), Trouble.PROTOCOL),
        (plain("200 OK", gzip.compress(b"{}"), "Content-Type: application/json", "Content-Encoding: gzip"), Trouble.PROTOCOL),
        (plain("200 OK", b" " * (8 * 1024 * 1024 + 1), "Content-Type: application/json"), Trouble.TOO_LARGE),
    ],
)  # fmt: skip
async def test_a_failure_belongs_to_its_call_alone_and_is_not_sent_again(
    answer: bytes | None, trouble: Trouble
) -> None:
    def slow(asked: Asked) -> list[Any]:
        return [STREAM, peer.release, event(text(asked, "slow"))]

    async with scripted() as peer:
        peer.on = tool(bad=answer, slow=slow)
        async with server_of(http_config(peer.url)) as server:
            beside = asyncio.ensure_future(call(server, "slow"))
            with pytest.raises(RemoteFailure) as failure:
                await call(server, "bad")
            assert (failure.value.trouble, failure.value.sent) == (trouble, True)
            assert len(peer.calls("bad")) == 1
            peer.release.set()
            assert await beside == "slow" and await call(server, "other") == "done"
        assert peer.sessions == 1


async def test_a_server_that_pretends_that_the_connection_closed_is_a_server_that_said_something() -> None:
    def lies(asked: Asked) -> bytes:
        error = {"code": -32000, "message": "Connection closed"}
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}).encode()
        return plain("200 OK", body, "Content-Type: application/json")

    async with scripted(tool(lies=lies)) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "lies")
    assert failure.value.trouble is Trouble.SERVER_ERROR and failure.value.external_text == "Connection closed"


async def test_a_stream_that_breaks_off_is_taken_up_again_and_the_call_not_sent_again() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        if asked.tool == "long":
            return [STREAM, b"id: 7\r\nretry: 10\r\ndata: \r\n\r\n"]
        if asked.method == "GET" and asked.headers.get("last-event-id") == "7":
            return [STREAM, event(text(server.calls("long")[0], "after all"))]
        return ...

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        assert await call(server, "long") == "after all"
        assert len(peer.calls("long")) == 1


async def test_a_stream_that_breaks_off_again_and_again_ends_the_call() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        if asked.tool == "long" or "last-event-id" in asked.headers:
            return [STREAM, b"id: 7\r\nretry: 1\r\ndata: \r\n\r\n"]
        return ...

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "long")
        assert failure.value.trouble is Trouble.DISCONNECTED and failure.value.sent
        assert len(peer.calls("long")) == 1


async def test_a_caller_that_gives_up_is_free_although_the_note_of_it_is_not_taken() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        hangs = asked.tool == "hangs" or asked.message.get("method") == "notifications/cancelled"
        return [server.release] if hangs else ...

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "hangs", timeout_s=0.2)
        assert failure.value.trouble is Trouble.TIMEOUT
        assert await call(server, "other") == "done"
        assert len(peer.asked("notifications/cancelled")) == 1


async def test_a_rejected_credential_at_the_handshake_is_said_and_tried_once() -> None:
    async with scripted(lambda self, asked: plain("401 Unauthorized")) as peer:
        async with server_of(http_config(peer.url, BEARER)) as server:
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
        assert failure.value.trouble is Trouble.UNAUTHORIZED and len(peer.seen) == 1


async def test_a_server_that_wants_a_browser_is_declined_and_its_addresses_are_not_fetched() -> None:
    async with scripted() as other:
        challenge = f'WWW-Authenticate: Bearer resource_metadata="{other.url}"'
        async with (
            scripted(lambda self, asked: plain("401 Unauthorized", b"", challenge)) as peer,
            server_of(http_config(peer.url)) as server,
        ):
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
    assert failure.value.trouble is Trouble.AUTH_UNSUPPORTED and other.seen == []


async def test_a_server_that_asks_for_consent_in_the_middle_of_a_call_is_declined_and_its_address_is_not_fetched() -> (
    None
):
    async with scripted() as other:

        def asks(asked: Asked) -> bytes:
            data = {"elicitations": [{"mode": "url", "url": other.url, "elicitationId": "e-1"}]}
            error = {"code": -32042, "message": "open this first", "data": data}
            body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}).encode()
            return plain("200 OK", body, "Content-Type: application/json")

        async with scripted(tool(do=asks)) as peer, server_of(http_config(peer.url, BEARER)) as server:
            with pytest.raises(RemoteFailure) as failure:
                await call(server, "do")
            assert await call(server, "other") == "done"
    assert failure.value.trouble is Trouble.AUTH_UNSUPPORTED and failure.value.sent and other.seen == []


async def test_a_credential_that_is_refused_with_a_pointer_to_a_browser_is_a_refused_credential() -> None:
    challenge = 'WWW-Authenticate: Bearer error="invalid_token", resource_metadata="http://127.0.0.1:9/"'
    async with (
        scripted(tool(do=plain("401 Unauthorized", b"", challenge))) as peer,
        server_of(http_config(peer.url, BEARER)) as server,
    ):
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "do")
    assert failure.value.trouble is Trouble.UNAUTHORIZED


@pytest.mark.parametrize(
    "answer",
    [
        plain("200 OK", b"<html>A page of ours.</html>", "Content-Type: text/html"),
        plain("200 OK", b"{nope", "Content-Type: application/json"),
        plain("200 OK", b'{"hello": "ours"}', "Content-Type: application/json"),
        plain("202 Accepted"),
        plain("204 No Content"),
        [STREAM, b"data: {nope\r\n\r\n"],
    ],
)
async def test_an_answer_that_is_none_is_told_as_that_and_in_no_words_of_a_library(answer: Any) -> None:
    async with scripted(tool(do=answer)) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await call(server, "do")
        assert failure.value.trouble is Trouble.PROTOCOL and failure.value.external_text is None
        assert await call(server, "other") == "done"
    async with scripted(lambda self, asked: answer) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.HANDSHAKE and failure.value.external_text is None


async def test_a_goodbye_that_is_not_taken_does_not_hold_the_close() -> None:
    async with scripted(lambda self, asked: [self.release] if asked.method == "DELETE" else ...) as peer:
        async with server_of(http_config(peer.url)) as server:
            assert await call(server, "do") == "done"
        assert peer.seen[-1].method == "DELETE"


def granting(*tokens: dict[str, Any]) -> Callable[[Scripted, Asked], Any]:
    """A token endpoint that grants one after the other."""
    left = list(tokens)

    def on(server: Scripted, asked: Asked) -> Any:
        return plain("200 OK", json.dumps(left.pop(0)).encode(), "Content-Type: application/json")

    return on


def client_of(issuer: Scripted) -> Authentication:
    return Authentication(
        scheme=AuthScheme.OAUTH2_CLIENT,
        credential_ref="vault:client",
        token_endpoint=f"http://127.0.0.1:{issuer.port}/token",
        token_scopes=("tools",),
    )


async def test_a_client_exchanges_its_secret_once_at_the_configured_endpoint_alone() -> None:
    vault = Vault(**{"vault:client": "client-secret-1"})
    async with (
        scripted(granting({"access_token": "at-1", "expires_in": 3600})) as issuer,
        scripted() as peer,
        server_of(http_config(peer.url, client_of(issuer)), vault=vault) as server,
    ):
        await asyncio.gather(*(call(server, "do") for _ in range(5)))
        assert (await server.connection()).secrets[0] == "client-secret-1"
    assert len(issuer.seen) == 1 and issuer.seen[0].body == b"grant_type=client_credentials&scope=tools"
    assert {asked.headers.get("authorization") for asked in peer.seen} == {"Bearer at-1"}
    assert not any("client-secret-1" in str(asked) for asked in peer.seen)


async def test_a_token_is_exchanged_again_a_minute_before_it_expires_when_it_is_used() -> None:
    vault = Vault(**{"vault:client": "client-secret-1"})
    tokens = [{"access_token": f"at-{number}", "expires_in": 30} for number in range(20)]
    async with (
        scripted(granting(*tokens)) as issuer,
        scripted() as peer,
        server_of(http_config(peer.url, client_of(issuer)), vault=vault) as server,
    ):
        await call(server, "do")
        await call(server, "do")
    first, second = (asked.headers["authorization"] for asked in peer.calls())
    assert first != second


async def test_calls_that_were_refused_together_share_one_exchange() -> None:
    vault = Vault(**{"vault:client": "client-secret-1"})
    tokens = [{"access_token": f"at-{number}"} for number in range(5)]
    async with scripted(granting(*tokens)) as issuer, scripted() as peer:
        async with server_of(http_config(peer.url, client_of(issuer)), vault=vault) as server:
            auth = (await server.connection()).authentication
            refused = await auth.headers()
            assert await asyncio.gather(*(auth.renew(refused) for _ in range(5))) == [True] * 5
        assert len(issuer.seen) == 2 and peer.calls() == []


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (plain("401 No", b'{"error":"invalid_client"}'), Trouble.UNAUTHORIZED),
        (plain("500 Oh no"), Trouble.CONNECT),
        (plain("200 OK", b"{}"), Trouble.CONNECT),
        (plain("200 OK", b'{"access_token":"a b\\n"}'), Trouble.CONNECT),
        (plain("302 Found", b"", "Location: http://169.254.169.254/"), Trouble.CONNECT),
    ],
)
async def test_an_endpoint_that_grants_nothing_leaves_the_server_alone(answer: bytes, trouble: Trouble) -> None:
    vault = Vault(**{"vault:client": "client-secret-1"})
    async with scripted(lambda self, asked: answer) as issuer, scripted() as peer:
        async with server_of(http_config(peer.url, client_of(issuer)), vault=vault) as server:
            with pytest.raises(RemoteFailure) as failure:
                await server.connection()
        assert failure.value.trouble is trouble and peer.seen == [] and len(issuer.seen) == 1


async def test_a_bearer_that_did_not_change_is_not_another_value() -> None:
    vault = Vault()
    async with scripted() as peer, server_of(http_config(peer.url, BEARER), vault=vault) as server:
        auth = (await server.connection()).authentication
        assert not await auth.renew(await auth.headers())
        refused = await auth.headers()
        vault.values["vault:token"] = "tok-rotated-1"
        assert await auth.renew(refused) and auth.secrets == (TOKEN, "tok-rotated-1")


async def test_an_event_within_the_limit_passes_and_one_beyond_it_ends_the_call() -> None:
    def of(size: int) -> Callable[[Asked], list[Any]]:
        return lambda asked: [STREAM, event(text(asked, "x" * size))]

    script = tool(fits=of(2 * 1024 * 1024), bursts=of(9 * 1024 * 1024))
    async with scripted(script) as peer, server_of(http_config(peer.url)) as server:
        assert len(await call(server, "fits")) == 2 * 1024 * 1024
        with pytest.raises(RemoteFailure):
            await call(server, "bursts")
        assert await call(server, "other") == "done"


async def test_a_server_is_reached_at_the_judged_address_and_proves_its_name(tmp_path: Path) -> None:
    serving, trusting = certificate_of("localhost", tmp_path)
    async with scripted(tls=serving) as peer:
        async with server_of(http_config(peer.url, BEARER), tls=trusting) as server:
            assert await call(server, "do") == "done"
        assert {asked.headers["host"] for asked in peer.seen} == {f"localhost:{peer.port}"}
        heard = len(peer.seen)
        elsewhere = peer.url.replace("localhost", "127.0.0.1")
        for config, tls in ((http_config(elsewhere, BEARER), trusting), (http_config(peer.url, BEARER), None)):
            async with server_of(config, tls=tls) as server:
                with pytest.raises(RemoteFailure) as failure:
                    await server.connection()
            assert failure.value.trouble is Trouble.CONNECT and not failure.value.sent
        assert len(peer.seen) == heard


async def test_what_a_server_announces_over_its_own_stream_is_counted() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        if asked.method != "GET":
            return ...
        return [STREAM, event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), server.release]

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        heard = (await server.connection()).session.heard
        await until(lambda: heard.list_changed == 1)
        assert await call(server, "do") == "done"


async def test_rounds_of_opening_and_closing_leave_no_descriptor(nothing_left: Callable[[], Awaitable[None]]) -> None:
    async with scripted() as peer:
        for _ in range(30):
            async with server_of(http_config(peer.url)) as server:
                assert await call(server, "do") == "done"
        await until(lambda: peer.open == 0)
        assert peer.live == set() and peer.sessions == 30
    await nothing_left()
