"""What connections need of a store. Every change is a compare-and-set by database time; ``None`` or ``False``: somebody moved first."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.services.connections.envelope import Sealed
from agentic.services.connections.models import NewConnection, StoredConnection


class ConnectionStore(Protocol):
    """Rows of ``agent.connections``."""

    async def of_provider(
        self, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Sequence[StoredConnection]:
        """The connections of a provider, those that are not revoked first; with an id, that one of them at most."""
        ...

    async def read(self, organization_id: UUID, connection_id: UUID) -> StoredConnection | None:
        """One connection; another organization's is as good as none (T1)."""
        ...

    async def list(self, organization_id: UUID) -> Sequence[StoredConnection]:
        """Every connection, the newest first."""
        ...

    async def add(self, new: NewConnection) -> StoredConnection:
        """Store one.

        Raises:
            Conflict: a connection of this provider and label is there.
        """
        ...

    async def reconnect(self, organization_id: UUID, connection_id: UUID, sealed: Sealed) -> StoredConnection | None:
        """Put a new secret into one that is not revoked; whoever renews the old one has lost."""
        ...

    async def revoke(self, organization_id: UUID, connection_id: UUID) -> StoredConnection | None:
        """Disconnect for good and forget the secret; ``None`` when there is none to disconnect."""
        ...

    async def take_refresh(
        self, organization_id: UUID, connection_id: UUID, *, lease_s: float
    ) -> StoredConnection | None:
        """Take the lease to renew: only where it is due, and nobody holds the lease."""
        ...

    async def store_tokens(
        self,
        organization_id: UUID,
        connection_id: UUID,
        *,
        fence: int,
        sealed: Sealed,
        lifetime_s: float,
        expires: bool,
    ) -> StoredConnection | None:
        """End a renewal that brought a token, if the lease is still the one of this fence.

        Args:
            lifetime_s: seconds the token lives.
            expires: whether its server said so; else the life is assumed.
        """
        ...

    async def end_refresh(self, organization_id: UUID, connection_id: UUID, *, fence: int) -> bool:
        """Give the lease back without a token; the next one may try."""
        ...

    async def refuse_refresh(self, organization_id: UUID, connection_id: UUID, *, fence: int, reason: str) -> bool:
        """End a renewal whose credential was refused: it needs a person."""
        ...

    async def reject(self, organization_id: UUID, connection_id: UUID, *, version: int, reason: str) -> bool:
        """Note that a vendor rejects the credential of this version: it needs a person."""
        ...

    async def expire(self, organization_id: UUID, connection_id: UUID, *, version: int) -> bool:
        """Note that a vendor rejects the token of this version: the next use renews it."""
        ...

    async def sealed_otherwise(self, key_id: str, *, after: UUID | None, limit: int) -> Sequence[StoredConnection]:
        """Connections of every organization whose data key another master key wraps, by id."""
        ...

    async def rewrap(self, organization_id: UUID, connection_id: UUID, *, version: int, sealed: Sealed) -> bool:
        """Put a data key under another master key, if the secret is still of this version."""
        ...
