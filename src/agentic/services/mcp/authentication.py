"""How a resolved credential reaches a server: as a header, built at the moment of use. Each connection resolves anew and keeps to itself.

The client-credentials exchange is ours: the SDK's own fetches any address an untrusted server names, and without an issuer it sends the
client's secret to the server itself. Here it goes to the configured endpoint alone, through the governed client.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

from pydantic import SecretStr

from agentic.contract.clock import Clock
from agentic.services.mcp.config import Authentication, AuthScheme
from agentic.services.mcp.config_check import origin_of
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.tools.handlers.errors import HandlerError
from agentic.services.tools.handlers.http import GovernedClient

EXPIRY_SKEW_S: Final = 60.0
EXCHANGE_TIMEOUT_S: Final = 10.0
_DEFAULT_LIFETIME_S: Final = 300.0
_MAX_TOKEN: Final = 16 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Credential:
    """What a reference led to: a token, or a client's secret with its id. Its text form shows neither."""

    secret: SecretStr
    client_id: str | None = None


class Credentials(Protocol):
    """The vault, as far as a connection needs it."""

    async def resolve(self, reference: str) -> Credential:
        """The credential as it is now.

        Raises:
            AgenticError: there is none, or the vault does not answer.
        """
        ...


class Authenticator(Protocol):
    """Puts the credential of one connection into its requests."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value this connection has used; what comes back is cleaned of them (B2)."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """Of a request that is about to be sent.

        Raises:
            RemoteFailure: the token endpoint refused, or was not reached. Nothing was sent to the server.
        """
        ...

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Get the credential again after the server refused it; whether requests carry another value now.

        Args:
            refused: the headers that did not help.

        Raises:
            RemoteFailure: as ``headers``.
        """
        ...


class NoCredential:
    """The scheme `none`."""

    secrets: tuple[str, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """There is nothing to renew."""
        return False


class TokenHeader:
    """The schemes `bearer` and `header`: the vault's value as it is."""

    def __init__(self, auth: Authentication, vault: Credentials) -> None:
        self._reference = auth.credential_ref or ""
        bearer = auth.scheme is AuthScheme.BEARER
        self._name, self._prefix = ("Authorization", "Bearer ") if bearer else (auth.name or "", "")
        self._vault = vault
        self._token: str | None = None
        self.secrets: tuple[str, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        """The one header."""
        if self._token is None:
            await self._resolve()
        return {self._name: f"{self._prefix}{self._token}"}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Ask the vault again: an operator may have rotated the value."""
        await self._resolve()
        return await self.headers() != refused

    async def _resolve(self) -> None:
        token = (await self._vault.resolve(self._reference)).secret.get_secret_value()
        if not _sendable(token):
            raise RemoteFailure(Trouble.UNAUTHORIZED, "the credential holds characters that a header cannot carry")
        self._token = token
        self.secrets = _with(self.secrets, token)


class ClientCredentials:
    """The scheme `oauth2_client`: one exchange serves every call until a minute before it expires, looked at when a header is built."""

    def __init__(self, auth: Authentication, vault: Credentials, clock: Clock) -> None:
        self._auth = auth
        self._vault = vault
        self._clock = clock
        self._one = asyncio.Lock()
        self._token: str | None = None
        self._expires_at = 0.0
        self.secrets: tuple[str, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        """A bearer token that is good for another minute."""
        async with self._one:  # held for an exchange, never for a request to the server
            if self._token is None or self._clock.monotonic() >= self._expires_at - EXPIRY_SKEW_S:
                await self._exchange()
            return self._header()

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Discard the token and exchange again; calls that were refused together share one exchange."""
        async with self._one:
            if self._header() == refused:
                await self._exchange()
            return self._header() != refused

    def _header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def _exchange(self) -> None:
        credential = await self._vault.resolve(self._auth.credential_ref or "")
        secret = credential.secret.get_secret_value()
        pair = f"{quote(credential.client_id or '', safe='')}:{quote(secret, safe='')}"
        basic = base64.b64encode(pair.encode()).decode()
        self.secrets = _with(self.secrets, secret, basic)
        form = {"grant_type": "client_credentials"}
        if self._auth.token_scopes:
            form["scope"] = " ".join(self._auth.token_scopes)
        self._token, lifetime_s = _granted(await self._post(basic, urlencode(form).encode()))
        self._expires_at = self._clock.monotonic() + lifetime_s
        self.secrets = _with(self.secrets, self._token)

    async def _post(self, basic: str, body: bytes) -> bytes:
        url = self._auth.token_endpoint or ""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "authorization": f"Basic {basic}",
            "content-type": "application/x-www-form-urlencoded",
            "accept": "application/json",
        }
        deadline = self._clock.monotonic() + EXCHANGE_TIMEOUT_S
        try:
            async with GovernedClient(
                origin=origin_of(url).text, deadline=deadline, clock=self._clock, max_body_bytes=64 * 1024
            ) as client:
                reply = await client.post_bytes(path, body, headers=headers)
        except HandlerError as error:
            raise RemoteFailure(Trouble.CONNECT, f"the token endpoint: {error}") from None
        if reply.status in (400, 401, 403):
            raise RemoteFailure(
                Trouble.UNAUTHORIZED, "the token endpoint does not accept the client", status=reply.status
            )
        if reply.status != 200 or reply.truncated:
            raise RemoteFailure(
                Trouble.CONNECT, f"the token endpoint answered with status {reply.status}", status=reply.status
            )
        return reply.body


def authenticator(auth: Authentication, vault: Credentials, clock: Clock) -> Authenticator:
    """What serves a scheme over HTTP."""
    match auth.scheme:
        case AuthScheme.BEARER | AuthScheme.HEADER:
            return TokenHeader(auth, vault)
        case AuthScheme.OAUTH2_CLIENT:
            return ClientCredentials(auth, vault, clock)
        case AuthScheme.NONE | AuthScheme.ENV:
            return NoCredential()


def _granted(body: bytes) -> tuple[str, float]:
    """Token and lifetime in seconds of an endpoint's answer."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    token = said.get("access_token") if isinstance(said, dict) else None
    if not (isinstance(token, str) and _sendable(token)):
        raise RemoteFailure(Trouble.CONNECT, "the token endpoint answered without a token")
    if str(said.get("token_type", "bearer")).lower() != "bearer":
        raise RemoteFailure(Trouble.AUTH_UNSUPPORTED, "the token endpoint grants another kind of token than bearer")
    lifetime = said.get("expires_in", _DEFAULT_LIFETIME_S)
    valid = isinstance(lifetime, int | float) and not isinstance(lifetime, bool) and 0 <= lifetime < 10**9
    return token, float(lifetime) if valid else _DEFAULT_LIFETIME_S


def _sendable(token: str) -> bool:
    return 0 < len(token) <= _MAX_TOKEN and token.isascii() and token.isprintable() and token == token.strip()


def _with(secrets: tuple[str, ...], *more: str) -> tuple[str, ...]:
    return (*secrets, *(each for each in dict.fromkeys(more) if each not in secrets))
