"""The one request of a renewal, and every answer it can have."""

import base64
import json
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import pytest

from agentic.services.connections.models import Binding, ClientAuth, Kind
from agentic.services.connections.oauth import (
    NotNow,
    Refused,
    Tokens,
    check_endpoint,
    read_tokens,
    token_request,
)
from agentic.services.connections.secrets import OAuthSecret
from agentic.services.tools.handlers.reply import Reply


def binding(kind: Kind, auth: ClientAuth = ClientAuth.BASIC, resource: str | None = None) -> Binding:
    return Binding(
        organization_id=UUID(int=1),
        id=UUID(int=2),
        provider="mail",
        kind=kind,
        token_endpoint="https://login.vendor.example/oauth/token?v=2",
        client_auth=auth,
        resource=resource,
    )


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status=status, headers={}, body=body if isinstance(body, bytes) else json.dumps(body).encode())


def test_a_client_asks_with_its_id_and_secret_each_escaped() -> None:
    secret = OAuthSecret(client_id="a:da", client_secret="s:+%/ecret")
    asked = token_request(binding(Kind.OAUTH_CLIENT, resource="https://mcp.vendor.example/mcp"), secret, ["a", "b"])
    assert (asked.origin, asked.path) == ("https://login.vendor.example", "/oauth/token?v=2")
    assert base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")) == b"a%3Ada:s%3A%2B%25%2Fecret"
    assert dict(parse_qsl(asked.body.decode())) == {
        "grant_type": "client_credentials",
        "scope": "a b",
        "resource": "https://mcp.vendor.example/mcp",
    }


def test_a_client_that_posts_its_secret_sends_it_once() -> None:
    secret = OAuthSecret(client_id="ada", client_secret="client-value")
    asked = token_request(binding(Kind.OAUTH_CLIENT, ClientAuth.POST), secret, [])
    assert "authorization" not in asked.headers
    assert dict(parse_qsl(asked.body.decode())) == {
        "grant_type": "client_credentials",
        "client_id": "ada",
        "client_secret": "client-value",
    }


def test_a_consent_is_renewed_with_its_refresh_token_also_by_a_client_without_secret() -> None:
    secret = OAuthSecret(client_id="ada", client_secret=None, refresh_token="refresh-value")
    asked = token_request(binding(Kind.OAUTH_REFRESH), secret, ["a"])
    assert dict(parse_qsl(asked.body.decode())) == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh-value",
        "client_id": "ada",
    }


@pytest.mark.guarantee("B2")
def test_a_request_shows_neither_header_nor_body() -> None:
    secret = OAuthSecret(client_id="ada", client_secret="client-value", refresh_token="refresh-value")
    assert "value" not in repr(token_request(binding(Kind.OAUTH_REFRESH), secret, []))


GRANTED = {"access_token": "access-value", "token_type": "Bearer", "expires_in": 3600}


@pytest.mark.parametrize(
    ("said", "lifetime_s"),
    [
        (GRANTED, 3600),
        ({**GRANTED, "token_type": "bEaReR", "expires_in": "120"}, 120),
        ({**GRANTED, "expires_in": None}, None),
        ({**GRANTED, "expires_in": "soon"}, None),
        ({**GRANTED, "expires_in": -5}, None),
        ({**GRANTED, "expires_in": True}, None),
        ({**GRANTED, "expires_in": 0.5}, 0.5),
    ],
)
def test_a_granted_token_is_taken_with_what_is_said_of_its_life(said: dict[str, Any], lifetime_s: float | None) -> None:
    found = read_tokens(Kind.OAUTH_CLIENT, reply(said))
    assert isinstance(found, Tokens)
    assert (found.access_token, found.lifetime_s) == ("access-value", lifetime_s)


def test_a_new_refresh_token_is_taken_from_a_consent_and_ignored_from_a_client() -> None:
    said = reply({**GRANTED, "refresh_token": "refresh-value-2"})
    of_consent, of_client = read_tokens(Kind.OAUTH_REFRESH, said), read_tokens(Kind.OAUTH_CLIENT, said)
    assert isinstance(of_consent, Tokens)
    assert isinstance(of_client, Tokens)
    assert (of_consent.refresh_token, of_client.refresh_token) == ("refresh-value-2", None)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "invalid_grant"),
        (401, "invalid_client"),
        (400, "invalid_target"),
        (400, "unauthorized_client"),
        (403, "invalid_scope"),
    ],
)
def test_a_refusal_is_known_by_the_standards_code_and_its_words_are_dropped(status: int, error: str) -> None:
    found = read_tokens(
        Kind.OAUTH_REFRESH, reply({"error": error, "error_description": "refresh-value is old"}, status)
    )
    assert found == Refused(error=error)


@pytest.mark.parametrize(
    "answer",
    [
        reply({"error": "invalid_grant"}, 500),
        reply({"error": "temporarily_unavailable"}, 400),
        reply({"error": ["invalid_grant"]}, 400),
        reply({"error": "slow_down"}, 429),
        reply(b"<html>sign in</html>", 200),
        reply(b"", 502),
        reply(b"[" * 60_000),
        reply([], 200),
        reply({"token_type": "bearer"}),
        reply({**GRANTED, "token_type": "mac"}),
        reply({**GRANTED, "access_token": "two\nlines"}),
        reply({**GRANTED, "access_token": ""}),
        reply({**GRANTED}, 302),
    ],
)
def test_whatever_else_is_answered_says_nothing_about_the_credential(answer: Reply) -> None:
    found = read_tokens(Kind.OAUTH_REFRESH, answer)
    assert isinstance(found, NotNow)
    assert "value" not in found.why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://login.vendor.example/token", None),
        ("http://127.0.0.1:8080/token", None),
        ("http://login.vendor.example/token", "in the clear"),
        ("https://10.0.0.1/token", "inside this network"),
        ("https://ada:key@login.vendor.example/token", "credentials"),
        ("login.vendor.example", "origin"),
        ("https://login.vendor.example/token#x", "fragment"),
        ("https://[login", "no address"),
    ],
)
def test_a_token_endpoint_is_one_that_a_secret_may_go_to(url: str, why: str | None) -> None:
    found = check_endpoint(url)
    assert found is None if why is None else why in str(found)
