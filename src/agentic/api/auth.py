"""Who is calling: a bearer token becomes an organization and a person, or the request ends here (A5, T1).

What the person may do there is not the token's to say: the role is read from the database at each request.
"""

from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import jwt

from agentic.contract.errors import AgenticError, ProgramFault

MIN_SECRET_BYTES = 32
"""RFC 7518, section 3.2: an HS256 key is at least as long as its hash."""
MAX_TOKEN_CHARS = 8192


class NotAuthenticated(AgenticError):
    """The request carries no token that counts. The message never says which part of a token was wrong beyond its age."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """An authenticated person, acting in one organization."""

    organization_id: UUID
    user_id: UUID


class Authenticator(Protocol):
    """Reads the ``Authorization`` header. Nothing else of a request can carry a credential, its query string least of all."""

    async def authenticate(self, authorization: str | None) -> Caller:
        """The caller.

        Args:
            authorization: the header's value; ``None`` when there is none.

        Raises:
            NotAuthenticated: the header is missing, or does not prove who calls.
        """
        ...


class JwtAuthenticator:
    """Verifies HS256 tokens of the shape Supabase issues."""

    def __init__(self, secret: str, *, audience: str = "authenticated", leeway_s: float = 10) -> None:
        """Take the project's signing secret.

        Args:
            secret: at least 32 bytes.
            audience: what ``aud`` must hold.
            leeway_s: how far the clocks of issuer and server may differ, in seconds.

        Raises:
            ProgramFault: the secret is too short to sign with.
        """
        if len(secret.encode()) < MIN_SECRET_BYTES:
            raise ProgramFault(
                f"the secret that signs tokens has fewer than {MIN_SECRET_BYTES} bytes; use a longer, random one"
            )
        self._secret = secret
        self._audience = audience
        self._leeway_s = leeway_s

    async def authenticate(self, authorization: str | None) -> Caller:
        """See ``Authenticator``."""
        claims = self._verified(_token(authorization))
        metadata = claims.get("app_metadata")
        # user_metadata is written by the user, so an organization named there proves nothing
        organization = metadata.get("organization_id") if isinstance(metadata, dict) else None
        if organization is None:
            raise NotAuthenticated("the token names no organization (app_metadata.organization_id); sign in to one")
        try:
            return Caller(organization_id=UUID(str(organization)), user_id=UUID(str(claims["sub"])))
        except ValueError:
            raise _refused() from None

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._secret,
                algorithms=["HS256"],  # the token's own header never chooses
                audience=self._audience,
                leeway=self._leeway_s,
                options={"require": ["exp", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError:
            raise NotAuthenticated("the token has expired; sign in again") from None
        except jwt.PyJWTError:
            raise _refused() from None
        return claims


def _token(authorization: str | None) -> str:
    if authorization is None:
        raise NotAuthenticated("this needs a token: send the header 'Authorization: Bearer …'")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN_CHARS:
        raise _refused()
    return token


def _refused() -> NotAuthenticated:
    return NotAuthenticated("the token is not valid here; sign in again")
