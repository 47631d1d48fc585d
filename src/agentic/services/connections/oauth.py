"""The one request of a renewal, and what its answer means (RFC 6749, sections 4.4 to 6). Pure.

Sources: RFC 6749 2.3.1 for the client's credentials, 5.1 and 5.2 for answers; RFC 8707 for ``resource``.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard
from urllib.parse import quote_plus, urlencode, urlsplit

from agentic.services.connections.models import Binding, ClientAuth, Kind
from agentic.services.connections.secrets import OAuthSecret, Unspoken
from agentic.services.tools.handlers.egress import Origin
from agentic.services.tools.handlers.errors import EgressRefused
from agentic.services.tools.handlers.reply import Reply

UNSAID_LIFE_S: Final = 300.0
"""How long a token is taken to live whose answer does not say."""
_MAX_LIFE_S: Final = 10 * 365 * 86400.0
_REFUSALS: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
    }
)
"""What no waiting mends: a person connects the account again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRequest:
    """What is sent, and where."""

    origin: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Tokens(Unspoken):
    """What a renewal brought."""

    access_token: str
    refresh_token: str | None
    """Takes the place of the one that was used; ``None`` leaves that in force."""
    lifetime_s: float | None
    """``None`` when the answer does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The credential is no longer accepted."""

    error: str
    """The standard's code, never the server's words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotNow:
    """No token, and nothing said about the credential."""

    why: str


def check_endpoint(url: str) -> str | None:
    """What is wrong with the address of a token endpoint; ``None`` when it can be used."""
    try:
        parts = urlsplit(url)
        Origin.parse(f"{parts.scheme}://{parts.netloc}")
    except EgressRefused as refused:
        return str(refused)
    except ValueError:
        return "that is no address of a token endpoint"
    return "a token endpoint has no fragment" if parts.fragment else None


def token_request(binding: Binding, secret: OAuthSecret, scopes: Sequence[str]) -> TokenRequest:
    """The request that renews."""
    parts = urlsplit(binding.token_endpoint or "")
    form: list[tuple[str, str]] = []
    if binding.kind is Kind.OAUTH_REFRESH:
        form += [("grant_type", "refresh_token"), ("refresh_token", secret.refresh_token or "")]
    else:
        form.append(("grant_type", "client_credentials"))
        if scopes:
            form.append(("scope", " ".join(scopes)))
    if binding.resource is not None:
        form.append(("resource", binding.resource))
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    if secret.client_secret is not None and binding.client_auth is ClientAuth.BASIC:
        pair = f"{quote_plus(secret.client_id)}:{quote_plus(secret.client_secret)}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form.append(("client_id", secret.client_id))
        if secret.client_secret is not None:
            form.append(("client_secret", secret.client_secret))
    return TokenRequest(
        origin=f"{parts.scheme}://{parts.netloc}",
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        headers=headers,
        body=urlencode(form).encode(),
    )


def read_tokens(kind: Kind, reply: Reply) -> Tokens | Refused | NotNow:
    """What an answer means. A status other than 200 counts as a refusal only with one of the standard's codes."""
    try:
        said = json.loads(reply.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or reply.truncated:
        return NotNow(why=f"answered {reply.status} with something that is no token response")
    error = said.get("error")
    if reply.status in (400, 401, 403) and isinstance(error, str) and error in _REFUSALS:
        return Refused(error=error)
    if reply.status != 200:
        return NotNow(why=f"answered {reply.status}")
    token, token_type = said.get("access_token"), said.get("token_type")
    if not _sendable(token) or not isinstance(token_type, str) or token_type.lower() != "bearer":
        return NotNow(why="answered 200 without a bearer token")
    refresh = said.get("refresh_token")
    return Tokens(
        access_token=token,
        refresh_token=refresh if kind is Kind.OAUTH_REFRESH and _sendable(refresh) else None,
        lifetime_s=_seconds(said.get("expires_in")),
    )


def _sendable(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value) and value.isascii() and value.isprintable() and value == value.strip()


def _seconds(value: object) -> float | None:
    """Some servers say it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_LIFE_S:
        return None
    return float(value)
