"""Which connection of a provider a call uses. Pure."""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from agentic.contract.results import ErrorCode
from agentic.services.connections.models import ConnectionState, StoredConnection
from agentic.services.tools.connections import Unconnected, account_name


def chosen(found: Sequence[StoredConnection], *, connection_id: UUID | None) -> StoredConnection | Unconnected:
    """The one connection that is meant and may be used, or why there is none.

    An account that has to be connected again still counts as one of several: a call that names none must not slip to another
    account because the one it used to reach has expired.

    Args:
        found: the organization's connections of the provider.
        connection_id: the one that is named; ``None`` for the only one.
    """
    if connection_id is not None:
        named = next((one for one in found if one.id == connection_id), None)
        return Unconnected(code=ErrorCode.NOT_FOUND) if named is None else _usable(named)
    kept = [one for one in found if one.state is not ConnectionState.REVOKED]
    if len(kept) > 1:
        return Unconnected(code=ErrorCode.CONNECTION_AMBIGUOUS, choices=tuple(_choice(one) for one in kept))
    if kept:
        return _usable(kept[0])
    return Unconnected(code=ErrorCode.CONNECTION_REVOKED if found else ErrorCode.CONNECTION_REQUIRED)


def _choice(one: StoredConnection) -> str:
    """What whoever chooses reads of it. A model that was told an address finds the account by it."""
    ended = "" if one.state is ConnectionState.CONNECTED else ", which must be connected again"
    return f"{one.id} {account_name(one.label, one.account)}{ended}"


def _usable(one: StoredConnection) -> StoredConnection | Unconnected:
    match one.state:
        case ConnectionState.CONNECTED:
            return one
        case ConnectionState.NEEDS_REAUTH:
            return Unconnected(code=ErrorCode.CONNECTION_EXPIRED)
        case ConnectionState.REVOKED:
            return Unconnected(code=ErrorCode.CONNECTION_REVOKED)
        case _ as never:
            assert_never(never)
