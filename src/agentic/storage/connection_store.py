"""Connections in Postgres. The statements stand in ``queries/connections.sql``; no key of a vault comes near them."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentic.contract.errors import Conflict
from agentic.services.connections.envelope import Sealed
from agentic.services.connections.models import (
    Binding,
    ClientAuth,
    ConnectionState,
    Kind,
    NewConnection,
    StoredConnection,
)
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, text
from agentic.storage.queries import load_queries


class PostgresConnectionStore:
    """Implements ``ConnectionStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("connections")

    async def of_provider(
        self, organization_id: UUID, provider: str, connection_id: UUID | None
    ) -> Sequence[StoredConnection]:
        params = {"organization_id": organization_id, "provider": provider, "id": connection_id}
        return [_row(row) for row in await self._db.all(self._sql["of_provider"], params)]

    async def read(self, organization_id: UUID, connection_id: UUID) -> StoredConnection | None:
        return await self._changed("read", organization_id, connection_id)

    async def list(self, organization_id: UUID) -> Sequence[StoredConnection]:
        rows = await self._db.all(self._sql["list"], {"organization_id": organization_id})
        return [_row(row) for row in rows]

    async def add(self, new: NewConnection) -> StoredConnection:
        binding = new.binding
        params = {
            "id": binding.id,
            "organization_id": binding.organization_id,
            "provider": binding.provider,
            "kind": str(binding.kind),
            "label": text(new.label),
            "account": jsonb(dict(new.account)),
            "scopes": list(new.scopes),
            "header": binding.header,
            "token_endpoint": binding.token_endpoint,
            "client_auth": None if binding.client_auth is None else str(binding.client_auth),
            "resource": binding.resource,
            "created_by": new.created_by,
            **_sealed_params(new.sealed),
        }
        try:
            row = await self._db.one(self._sql["add"], params)
        except Conflict as there:
            raise Conflict(
                f"{binding.provider} has a connection of that label; choose another, or connect that one again"
            ) from there
        assert row is not None
        return _row(row)

    async def reconnect(self, organization_id: UUID, connection_id: UUID, sealed: Sealed) -> StoredConnection | None:
        return await self._changed("reconnect", organization_id, connection_id, **_sealed_params(sealed))

    async def revoke(self, organization_id: UUID, connection_id: UUID) -> StoredConnection | None:
        return await self._changed("revoke", organization_id, connection_id)

    async def take_refresh(
        self, organization_id: UUID, connection_id: UUID, *, lease_s: float
    ) -> StoredConnection | None:
        return await self._changed("take_refresh", organization_id, connection_id, lease_s=lease_s)

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
        return await self._changed(
            "store_tokens",
            organization_id,
            connection_id,
            fence=fence,
            lifetime_s=lifetime_s,
            expires=expires,
            **_sealed_params(sealed),
        )

    async def end_refresh(self, organization_id: UUID, connection_id: UUID, *, fence: int) -> bool:
        return await self._moved("end_refresh", organization_id, connection_id, fence=fence)

    async def refuse_refresh(self, organization_id: UUID, connection_id: UUID, *, fence: int, reason: str) -> bool:
        return await self._moved("refuse_refresh", organization_id, connection_id, fence=fence, reason=reason)

    async def reject(self, organization_id: UUID, connection_id: UUID, *, version: int, reason: str) -> bool:
        return await self._moved("reject", organization_id, connection_id, version=version, reason=reason)

    async def expire(self, organization_id: UUID, connection_id: UUID, *, version: int) -> bool:
        return await self._moved("expire", organization_id, connection_id, version=version)

    async def sealed_otherwise(self, key_id: str, *, after: UUID | None, limit: int) -> Sequence[StoredConnection]:
        params = {"key_id": key_id, "after": after, "limit": limit}
        return [_row(row) for row in await self._db.all(self._sql["sealed_otherwise"], params)]

    async def rewrap(self, organization_id: UUID, connection_id: UUID, *, version: int, sealed: Sealed) -> bool:
        return await self._moved("rewrap", organization_id, connection_id, version=version, **_sealed_params(sealed))

    async def _changed(
        self, name: str, organization_id: UUID, connection_id: UUID, **params: Any
    ) -> StoredConnection | None:
        row = await self._db.one(self._sql[name], {"id": connection_id, "organization_id": organization_id, **params})
        return None if row is None else _row(row)

    async def _moved(self, name: str, organization_id: UUID, connection_id: UUID, **params: Any) -> bool:
        keys = {"id": connection_id, "organization_id": organization_id}
        return await self._db.count(self._sql[name], {**keys, **params}) == 1


def _sealed_params(sealed: Sealed) -> dict[str, Any]:
    return {"key_id": sealed.key_id, "wrapped_key": sealed.wrapped_key, "sealed": sealed.body}


def _row(row: Mapping[str, Any]) -> StoredConnection:
    return StoredConnection(
        binding=Binding(
            organization_id=row["organization_id"],
            id=row["id"],
            provider=row["provider"],
            kind=Kind(row["kind"]),
            header=row["header"],
            token_endpoint=row["token_endpoint"],
            client_auth=None if row["client_auth"] is None else ClientAuth(row["client_auth"]),
            resource=row["resource"],
        ),
        label=row["label"],
        account={str(name): str(value) for name, value in row["account"].items()},
        state=ConnectionState(row["state"]),
        scopes=tuple(row["scopes"]),
        sealed=None
        if row["sealed"] is None
        else Sealed(key_id=row["key_id"], wrapped_key=bytes(row["wrapped_key"]), body=bytes(row["sealed"])),
        version=row["version"],
        fresh_for_s=row["fresh_for_s"],
        expires_at=row["expires_at"],
        refresh_fence=row["refresh_fence"],
        reauth_reason=row["reauth_reason"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
    )
