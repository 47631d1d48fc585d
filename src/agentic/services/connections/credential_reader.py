"""A stored credential by its connection's id, for a party whose protocol we do not speak: it is handed over as it is.

A connection that a call uses presents itself (``vault``), with its token renewed. Here the caller says what is done with the secret.
"""

from dataclasses import dataclass
from uuid import UUID

from agentic.contract.errors import AgenticError, NotFound
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import ConnectionState, Kind
from agentic.services.connections.ports import ConnectionStore
from agentic.services.connections.secrets import ApiKey, Unspoken, decoded


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PlainCredential(Unspoken):
    """A key, or a client's secret with its id."""

    value: str
    client_id: str | None = None
    """``None`` for a key."""


class CredentialUnusable(AgenticError):
    """A connection holds no credential that may be handed over. The message names the remedy."""


class CredentialReader:
    """Opens connections of any organization, as they are now.

    Args:
        store: where they are.
        keys: what opens them.
    """

    def __init__(self, *, store: ConnectionStore, keys: VaultKeys) -> None:
        self._store = store
        self._keys = keys

    async def read(self, organization_id: UUID, connection_id: UUID) -> PlainCredential:
        """The credential of one connection.

        Raises:
            NotFound: there is no such connection in this organization (T1).
            CredentialUnusable: it is revoked, has to be connected again, or holds a person's consent, which is given to nobody.
            VaultLocked: the vault has no key for it.
            SecretUnreadable: the row was changed, or the secret is another row's.
        """
        row = await self._store.read(organization_id, connection_id)
        if row is None:
            raise NotFound(f"connection {connection_id} does not exist in this organization")
        if row.state is ConnectionState.REVOKED or row.sealed is None:
            raise CredentialUnusable(f"connection {connection_id} is revoked; add a new one")
        if row.state is ConnectionState.NEEDS_REAUTH:
            raise CredentialUnusable(f"connection {connection_id} is not accepted any more; connect it again")
        if row.binding.kind is Kind.OAUTH_REFRESH:
            raise CredentialUnusable(f"connection {connection_id} is a person's consent; add a key or a client instead")
        secret = decoded(row.binding.kind, self._keys.open(row.sealed, row.binding.bound()))
        if isinstance(secret, ApiKey):
            return PlainCredential(value=secret.value)
        return PlainCredential(value=secret.client_secret or "", client_id=secret.client_id)
