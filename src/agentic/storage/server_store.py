"""MCP servers in Postgres. The statements stand in ``queries/servers.sql``; no command of a process ever stands in a row."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.services.mcp.catalog import Catalog, RemoteTool, catalog_of
from agentic.services.mcp.config import Classification, HttpEndpoint, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import ServerRefused
from agentic.services.mcp.deployment import not_started
from agentic.services.mcp.records import Declared, Observation, ServerState, Standing, StoredServer
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb
from agentic.storage.queries import load_queries

KEPT_CATALOGS: Final = 200
"""Of each server, besides those that something was approved of."""
_NOT_HERE: Final = StdioLaunch(command=("",))
_SETTINGS: Final = frozenset({"timeouts", "classification", "per_tool", "max_output_bytes"})
_UNASKABLE: Final = re.compile(r"[\0\ud800-\udfff]")
_Row = Mapping[str, Any]


class PostgresServerStore:
    """Implements ``ServerStore``.

    Args:
        launches: the stdio servers of this deployment, by server id; their commands are put in where a row says that it is one.
    """

    def __init__(self, database: Database, launches: Mapping[str, StdioLaunch]) -> None:
        self._db = database
        self._sql = load_queries("servers")
        self._launches = launches

    async def register(
        self, organization_id: UUID, config: ServerConfig, *, connection_id: UUID | None, user_id: UUID | None
    ) -> StoredServer:
        params = _params(organization_id, config, connection_id, user_id)
        row = await self._db.one(self._sql["register"], params)
        assert row is not None
        _check_allowed(row, config, connection_id)
        if row["server_id"] is None:
            raise Conflict(_taken(config.server_id, row["taken_by"]))
        return self._server(row)

    async def reconfigure(
        self,
        organization_id: UUID,
        config: ServerConfig,
        *,
        connection_id: UUID | None,
        revision: int,
        user_id: UUID | None,
    ) -> StoredServer:
        params = {**_params(organization_id, config, connection_id, user_id), "revision": revision}
        before, done, after = await self._change("reconfigure", params)
        _check_allowed(done, config, connection_id)
        if not done["changed"]:
            _check_not_retired(before)
            raise Conflict(
                f"the server {config.server_id} has been changed meanwhile; look at it again, then change it"
            )
        return self._server(after)

    async def classify(
        self,
        organization_id: UUID,
        server_id: str,
        said: Classification | None,
        *,
        remote_name: str | None,
        user_id: UUID | None,
    ) -> StoredServer:
        params = {
            **_key(organization_id, server_id, user_id),
            "remote_name": remote_name,
            "said": None if said is None else jsonb(said.model_dump(mode="json")),
        }
        before, _, after = await self._change("classify", params)
        _check_permitted(before)
        _check_not_retired(before)
        return self._server(after)

    async def observe(
        self, organization_id: UUID, server_id: str, catalog: Catalog, *, resources: bool, endpoint_revision: int
    ) -> Observation:
        params = {
            **_key(organization_id, server_id),
            "catalog_hash": catalog.catalog_hash,
            "rejected": _text([each.model_dump(mode="json") for each in catalog.rejected]),
            "conflicts": _text([each.model_dump(mode="json") for each in catalog.conflicts]),
            "remote_names": [tool.remote_name for tool in catalog.tools],
            "tools": _text([_line(tool) for tool in catalog.tools]),
            "resources": resources,
            "endpoint_revision": endpoint_revision,
            "kept": KEPT_CATALOGS,
        }
        before, done, after = await self._change("observe", params, "forget_catalogs")
        if not done["seen"]:
            _check_not_retired(before)
            raise Conflict(f"the server {server_id} has got another endpoint meanwhile; verify it again")
        return Observation(
            server=self._server(after), previous_hash=before["offered_hash"], new_generation=done["new_generation"]
        )

    async def unreachable(
        self, organization_id: UUID, server_id: str, *, reason: str, degrade_after: int, endpoint_revision: int
    ) -> StoredServer:
        params = {
            **_key(organization_id, server_id),
            "reason": reason,
            "degrade_after": degrade_after,
            "endpoint_revision": endpoint_revision,
        }
        row = await self._db.one(self._sql["unreachable"], params)
        return self._server(row or await self._read(organization_id, server_id))

    async def activate(
        self, organization_id: UUID, server_id: str, *, offered_hash: str, user_id: UUID | None
    ) -> StoredServer:
        params = {**_key(organization_id, server_id, user_id), "offered_hash": offered_hash}
        before, done, after = await self._change("activate", params)
        if not done["activated"]:
            _check_permitted(before)
            _check_not_retired(before)
            if before["state"] != ServerState.VERIFIED:
                raise Conflict(f"the server {server_id} is {before['state']}; only a verified one is activated")
            raise _offers_something_else(server_id)
        return self._server(after)

    async def approve(
        self,
        organization_id: UUID,
        server_id: str,
        remote_names: Sequence[str] | None,
        *,
        offered_hash: str,
        user_id: UUID | None,
    ) -> tuple[str, ...]:
        params = {
            **_key(organization_id, server_id, user_id),
            "remote_names": None if remote_names is None else [_askable(name) for name in remote_names],
            "offered_hash": offered_hash,
        }
        before, done, _ = await self._change("approve", params)
        if not done["open"]:
            _check_permitted(before)
            _check_not_retired(before)
            if before["state"] not in (ServerState.ACTIVE, ServerState.DEGRADED):
                raise Conflict(
                    f"the server {server_id} is {before['state']}; its tools are approved when it is activated"
                )
            raise _offers_something_else(server_id)
        if done["unknown"]:
            raise NotFound(
                f"the server {server_id} offers no tool {', '.join(map(repr, done['unknown']))}; none was approved"
            )
        return tuple(done["anew"])

    async def retire(self, organization_id: UUID, server_id: str, *, user_id: UUID | None) -> bool:
        before, done, _ = await self._change("retire", _key(organization_id, server_id, user_id))
        if not done:
            _check_permitted(before)
        return bool(done)

    async def started_for_somebody(self, server_id: str) -> bool:
        row = await self._db.one(self._sql["started_for_somebody"], {"server_id": _askable(server_id)})
        return row is not None and bool(row["started"])

    async def get(self, organization_id: UUID, server_id: str) -> Standing:
        found = await self.standings(organization_id, [server_id])
        if not found:
            raise _unknown(server_id)
        return found[0]

    async def revisions(self, organization_id: UUID) -> Mapping[str, int]:
        rows = await self._db.all(self._sql["revisions"], {"organization_id": organization_id})
        return {row["server_id"]: row["revision"] for row in rows}

    async def standings(self, organization_id: UUID, server_ids: Sequence[str]) -> list[Standing]:
        params = {"organization_id": organization_id, "server_ids": [_askable(each) for each in server_ids]}
        rows = await self._db.all(self._sql["standings"], params)
        # a thousand declarations take a second, which the event loop has not: it renews the leases of runs
        read = await asyncio.to_thread(lambda: [(_offered(row), _tools(row["approved"])) for row in rows])
        return [
            Standing(
                server=self._server(row),
                offered=offered,
                approved={tool.remote_name: tool for tool in approved},
            )
            for row, (offered, approved) in zip(rows, read, strict=True)
        ]

    async def generations(self, organization_id: UUID, server_id: str) -> list[tuple[str, datetime]]:
        rows = await self._db.all(self._sql["generations"], _key(organization_id, server_id))
        return [(row["catalog_hash"], row["discovered_at"]) for row in rows]

    async def declarations(
        self, organization_id: UUID, server_id: str, remote_name: str, *, limit: int = KEPT_CATALOGS
    ) -> list[Declared]:
        params = {**_key(organization_id, server_id), "remote_name": _askable(remote_name), "limit": limit}
        rows = await self._db.all(self._sql["declarations"], params)
        if not rows:
            raise _unknown(server_id)
        known = [row for row in rows if row["declaration"] is not None]
        tools = await asyncio.to_thread(_tools, [row["declaration"] for row in known])
        return [
            Declared(
                catalog_hash=row["catalog_hash"],
                tool=tool,
                discovered_at=row["discovered_at"],
                withdrawn_at=row["withdrawn_at"],
                approved_at=row["approved_at"],
                approved_by=row["approved_by"],
            )
            for row, tool in zip(known, tools, strict=True)
        ]

    async def due(self, *, limit: int) -> list[tuple[UUID, str]]:
        rows = await self._db.all(self._sql["due"], {"limit": limit})
        return [(row["organization_id"], row["server_id"]) for row in rows]

    async def _change(self, name: str, params: Mapping[str, Any], *more: str) -> tuple[_Row, _Row, _Row]:
        """One change as one transaction, behind the lock of its server: the row before, what the statement says, the row after.

        Raises:
            NotFound: there is no such server.
        """
        steps = ("lock", name, *more, "settle_tools", "read")
        before, done, *_, after = await self._db.atomic([(self._sql[step], params) for step in steps])
        if before is None:
            raise _unknown(params["server_id"])
        assert after is not None
        return before, done or {}, after

    async def _read(self, organization_id: UUID, server_id: str) -> _Row:
        row = await self._db.one(self._sql["read"], _key(organization_id, server_id))
        if row is None:
            raise _unknown(server_id)
        return row

    def _server(self, row: _Row) -> StoredServer:
        server_id, stdio = row["server_id"], row["transport"] == "stdio"
        launch = self._launches.get(server_id) if stdio else None
        connection_id = row["connection_id"]
        config = ServerConfig.model_validate(
            {
                "server_id": server_id,
                "owner": row["owner"],
                "endpoint": (launch or _NOT_HERE) if stdio else HttpEndpoint(url=row["url"]),
                "authentication": {
                    "scheme": row["auth_scheme"],
                    "credential_ref": None if connection_id is None else str(connection_id),
                    "name": row["auth_name"],
                    "token_endpoint": row["token_endpoint"],
                    "token_scopes": row["token_scopes"],
                },
                **row["settings"],
            }
        )
        return StoredServer(
            id=row["id"],
            organization_id=row["organization_id"],
            config=config,
            launch_fault=not_started(self._launches, server_id) if stdio else None,
            state=ServerState(row["state"]),
            revision=row["revision"],
            endpoint_revision=row["endpoint_revision"],
            connection_id=connection_id,
            offered_hash=row["offered_hash"],
            resources=row["resources"],
            reason=row["reason"],
            failures=row["failures"],
            verified_at=row["verified_at"],
            activated_at=row["activated_at"],
            retired_at=row["retired_at"],
            seen_at=row["seen_at"],
            created_at=row["created_at"],
        )

    async def servers(self, organization_id: UUID) -> list[StoredServer]:
        return [
            self._server(row) for row in await self._db.all(self._sql["servers"], {"organization_id": organization_id})
        ]


def _key(organization_id: UUID, server_id: str, user_id: UUID | None = None) -> dict[str, Any]:
    return {"organization_id": organization_id, "server_id": _askable(server_id), "user_id": user_id}


def _params(
    organization_id: UUID, config: ServerConfig, connection_id: UUID | None, user_id: UUID | None
) -> dict[str, Any]:
    auth, endpoint = config.authentication, config.endpoint
    return {
        **_key(organization_id, config.server_id, user_id),
        "owner": str(config.owner),
        "transport": endpoint.type,
        "url": endpoint.url if isinstance(endpoint, HttpEndpoint) else None,
        "auth_scheme": str(auth.scheme),
        "auth_name": auth.name,
        "connection_id": connection_id,
        "token_endpoint": auth.token_endpoint,
        "token_scopes": list(auth.token_scopes),
        "settings": jsonb(config.model_dump(mode="json", include=set(_SETTINGS))),
    }


def _askable(given: str) -> str:
    """A name that may be looked for. Postgres refuses U+0000 and lone surrogates, and no name here holds any: it is one that nobody has."""
    return ascii(given) if _UNASKABLE.search(given) else given


def _text(value: object) -> str:
    # escaped to ASCII: what Postgres refuses as a character, it keeps as an escape
    return json.dumps(value, allow_nan=False)


def _line(tool: RemoteTool) -> dict[str, str]:
    key = {"remote_name": tool.remote_name, "name": tool.name, "declaration_hash": tool.declaration_hash}
    return {**key, "declaration": tool.model_dump_json()}


def _tools(declarations: Iterable[str]) -> list[RemoteTool]:
    return [RemoteTool.model_validate_json(each) for each in declarations]


def _offered(row: _Row) -> Catalog:
    if row["offered_hash"] is None:
        return catalog_of(())
    return Catalog.model_validate(
        {
            "tools": _tools(row["offered"]),
            "rejected": json.loads(row["rejected"]),
            "conflicts": json.loads(row["conflicts"]),
            "catalog_hash": row["offered_hash"],
        }
    )


def _check_allowed(row: _Row, config: ServerConfig, connection_id: UUID | None) -> None:
    """Raise for what a configuration may not be because of other rows."""
    _check_permitted(row)
    if connection_id is not None and row["connection_kind"] is None:
        raise NotFound(f"connection {connection_id} does not exist in this organization")
    if not row["fits"]:
        raise ServerRefused((_misfit(row, config),))


def _misfit(row: _Row, config: ServerConfig) -> str:
    if row["connection_state"] == "revoked":
        return "the connection is revoked; add another one"
    if row["connection_provider"] not in ("mcp", f"mcp.{config.server_id}"):
        return (
            f"the connection is one of {row['connection_provider']}, whose key is nobody else's; a server takes a connection of the "
            f"provider mcp.{config.server_id}, or of mcp, which is for all servers"
        )
    scheme = config.authentication.scheme
    if row["connection_kind"] == "oauth_client" and scheme == "oauth2_client":
        return f"the connection's client is known at {row['connection_endpoint']}; token_endpoint has to be that one"
    wanted = "a client's id and secret" if scheme == "oauth2_client" else "an API key"
    return (
        f"the scheme {scheme} takes a connection that holds {wanted}; this one is of the kind {row['connection_kind']}"
    )


def _taken(server_id: str, state: str | None) -> str:
    if state == ServerState.RETIRED:
        return (
            f"the server {server_id} was retired, and the name of a retired server is not used again, because grants, rules and approvals "
            "carry it; choose another name"
        )
    return f"there is a server {server_id} here; grants and approvals name it, so choose another name"


def _check_permitted(row: _Row) -> None:
    if not row["permitted"]:
        raise NotPermitted("changing MCP servers takes the role admin in their organization; ask an admin to do it")


def _check_not_retired(row: _Row) -> None:
    if row["state"] == ServerState.RETIRED:
        raise Conflict(f"the server {row['server_id']} is retired, which is for good; add another one")


def _offers_something_else(server_id: str) -> Conflict:
    return Conflict(f"the server {server_id} offers something else by now; look at the difference again")


def _unknown(server_id: str) -> NotFound:
    return NotFound(f"there is no MCP server {server_id!r} in this organization")
