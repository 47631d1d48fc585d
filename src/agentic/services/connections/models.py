"""What a connection is: the row that anybody of the organization may see, and the sealed secret beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from agentic.contract.canonical import canonical
from agentic.services.connections.envelope import Sealed


class ConnectionState(StrEnum):
    """Whether a connection may be used."""

    CONNECTED = "connected"
    NEEDS_REAUTH = "needs_reauth"
    """Its credential is no longer accepted; a person connects it again."""
    REVOKED = "revoked"
    """Disconnected for good; its secret is forgotten."""


class Kind(StrEnum):
    """What the secret is."""

    API_KEY = "api_key"
    """One value that is sent as it is."""
    OAUTH_CLIENT = "oauth_client"
    """A client of the organization's own, which asks for tokens with its id and secret (RFC 6749, 4.4)."""
    OAUTH_REFRESH = "oauth_refresh"
    """A person's consent: a refresh token, which may be replaced at every use (RFC 6749, 6)."""


class ClientAuth(StrEnum):
    """How a client names itself to the token endpoint."""

    BASIC = "basic"
    POST = "post"


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """What a secret is bound to: in another row, or where one of these was changed, it does not open."""

    organization_id: UUID
    id: UUID
    provider: str
    kind: Kind
    header: str | None = None
    """The header that carries an API key bare; ``None`` for ``Authorization: Bearer``."""
    token_endpoint: str | None = None
    client_auth: ClientAuth | None = None
    resource: str | None = None
    """What tokens are for (RFC 8707)."""

    def bound(self) -> bytes:
        """The same bytes in every process."""
        return canonical(
            {
                "organization_id": str(self.organization_id),
                "id": str(self.id),
                "provider": self.provider,
                "kind": str(self.kind),
                "header": self.header,
                "token_endpoint": self.token_endpoint,
                "client_auth": None if self.client_auth is None else str(self.client_auth),
                "resource": self.resource,
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredConnection:
    """A row of ``agent.connections``."""

    binding: Binding
    label: str
    account: Mapping[str, str]
    state: ConnectionState
    scopes: tuple[str, ...]
    sealed: Sealed | None = field(repr=False)
    """``None`` once it is revoked."""
    version: int
    """Grows with every change of the sealed secret."""
    fresh_for_s: float | None
    """Seconds until its token is to be renewed, negative when that is due; ``None`` for what is never renewed."""
    expires_at: datetime | None
    refresh_fence: int
    reauth_reason: str | None
    created_by: UUID | None
    created_at: datetime
    revoked_at: datetime | None

    @property
    def id(self) -> UUID:
        """The connection's id."""
        return self.binding.id

    @property
    def organization_id(self) -> UUID:
        """The tenant."""
        return self.binding.organization_id


@dataclass(frozen=True, kw_only=True, slots=True)
class NewConnection:
    """A connection to be stored."""

    binding: Binding
    label: str
    account: Mapping[str, str]
    scopes: tuple[str, ...]
    sealed: Sealed = field(repr=False)
    created_by: UUID | None
