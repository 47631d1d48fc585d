"""What is inside a sealed secret. None of it is ever in a repr, a pickle or an error (B2)."""

import json
from dataclasses import dataclass
from typing import Any, Never

from agentic.contract.errors import ProgramFault
from agentic.services.connections.models import Kind
from agentic.services.tools.redaction import MIN_SECRET_CHARACTERS


class Unspoken:
    """A value that names its class at most."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> Never:
        raise TypeError(f"{type(self).__name__} holds a credential and is neither pickled nor copied")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ApiKey(Unspoken):
    """One value that is sent as it is."""

    value: str


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class OAuthSecret(Unspoken):
    """A client, what it may renew with, and the token of now."""

    client_id: str
    client_secret: str | None
    """``None`` for a client that has none (a public one, with a refresh token)."""
    refresh_token: str | None = None
    access_token: str | None = None


Secret = ApiKey | OAuthSecret


_WORDS = {
    Kind.API_KEY: "an API key",
    Kind.OAUTH_CLIENT: "an OAuth client",
    Kind.OAUTH_REFRESH: "a person's consent to an OAuth client",
}


def values(secret: Secret) -> tuple[str, ...]:
    """Every value of it that nobody may see."""
    if isinstance(secret, ApiKey):
        return (secret.value,)
    return tuple(v for v in (secret.access_token, secret.refresh_token, secret.client_secret) if v)


def check(kind: Kind, secret: Secret) -> None:
    """Refuse a secret that does not go with its kind, or that could not be kept out of rows.

    Raises:
        ValueError: naming what is wrong, and no value.
    """
    if isinstance(secret, ApiKey) != (kind is Kind.API_KEY):
        raise ValueError(f"the connection is {_WORDS[kind]}; its secret is replaced by one of the same kind")
    if isinstance(secret, OAuthSecret) and not secret.client_id.strip():
        raise ValueError("the client has no id")
    if isinstance(secret, OAuthSecret) and kind is Kind.OAUTH_CLIENT and not secret.client_secret:
        raise ValueError("a client that asks for tokens itself needs its secret")
    if isinstance(secret, OAuthSecret) and kind is Kind.OAUTH_REFRESH and not secret.refresh_token:
        raise ValueError("a person's consent is a refresh token; there is none")
    for value in values(secret):
        if len(value) < MIN_SECRET_CHARACTERS:
            raise ValueError(
                f"a secret has at least {MIN_SECRET_CHARACTERS} characters; a shorter one cannot be redacted"
            )
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise ValueError("a secret is printable ASCII without blanks around it; HTTP carries nothing else")


def encoded(secret: Secret) -> bytes:
    """The secret as it is sealed."""
    if isinstance(secret, ApiKey):
        return json.dumps({"value": secret.value}).encode()
    return json.dumps(
        {
            "client_id": secret.client_id,
            "client_secret": secret.client_secret,
            "refresh_token": secret.refresh_token,
            "access_token": secret.access_token,
        }
    ).encode()


def decoded(kind: Kind, body: bytes) -> Secret:
    """The secret of a connection of this kind.

    Raises:
        ProgramFault: a build wrote it that keeps secrets in another way.
    """
    try:
        fields: dict[str, Any] = json.loads(body)
        return ApiKey(**fields) if kind is Kind.API_KEY else OAuthSecret(**fields)
    except (TypeError, ValueError):
        raise ProgramFault("a connection's secret was written by another build of this package") from None
