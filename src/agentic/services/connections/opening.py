"""A row and its secret together, for the length of one call."""

from dataclasses import dataclass, field

from agentic.contract.errors import ProgramFault
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import StoredConnection
from agentic.services.connections.secrets import Secret, decoded


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A connection whose secret is in this process's hands."""

    row: StoredConnection
    secret: Secret = field(repr=False)
    fresh_until: float | None
    """Monotonic second from which its token is to be renewed; ``None`` for what is never renewed."""


def opened(row: StoredConnection, keys: VaultKeys, *, read_at: float) -> Opened:
    """Open a row's secret.

    Args:
        row: one that is not revoked.
        keys: the master keys.
        read_at: monotonic second before the row was read.

    Raises:
        VaultLocked: the master key is not there.
        SecretUnreadable: the row was changed, or the secret is another row's.
    """
    if row.sealed is None:
        raise ProgramFault(f"connection {row.id} is revoked; it has no secret to open")
    return Opened(
        row=row,
        secret=decoded(row.binding.kind, keys.open(row.sealed, row.binding.bound())),
        fresh_until=None if row.fresh_for_s is None else read_at + row.fresh_for_s,
    )
