"""Connections for people and programs: everything but the secret. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from agentic.cli.safe_text import safe_line
from agentic.cli.times import minute
from agentic.contract.json_types import JsonObject
from agentic.services.connections.models import StoredConnection

if TYPE_CHECKING:
    from datetime import datetime


def connection_view(one: StoredConnection) -> JsonObject:
    """A connection as a JSON object."""
    return {
        "id": str(one.id),
        "organization_id": str(one.organization_id),
        "provider": one.binding.provider,
        "kind": str(one.binding.kind),
        "label": one.label,
        "account": dict(one.account),
        "state": str(one.state),
        "reauth_reason": one.reauth_reason,
        "scopes": list(one.scopes),
        "token_endpoint": one.binding.token_endpoint,
        "key_id": None if one.sealed is None else one.sealed.key_id,
        "expires_at": _time(one.expires_at),
        "created_by": None if one.created_by is None else str(one.created_by),
        "created_at": _time(one.created_at),
        "revoked_at": _time(one.revoked_at),
    }


def connection_table(connections: Sequence[JsonObject]) -> Table:
    """Connections, a row each."""
    table = Table("connection", "provider", "label", "state", "since", "note", box=None, pad_edge=False)
    for one in connections:
        account = one["account"] if isinstance(one["account"], dict) else {}
        note = one["reauth_reason"] or ", ".join(f"{name} {value}" for name, value in account.items())
        row = [one["id"], one["provider"], one["label"], one["state"], minute(str(one["created_at"])), note]
        table.add_row(*(safe_line(str(cell)) for cell in row))
    return table


def _time(when: "datetime | None") -> str | None:
    return None if when is None else when.isoformat()
