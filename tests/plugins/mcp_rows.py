"""MCP servers as rows of a real database: an organization with its people, and what a server may say it offers."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.principal import Role
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import StoredConnection
from agentic.services.connections.secrets import ApiKey, OAuthSecret
from agentic.services.connections.service import ConnectionService, TokenEndpoint
from agentic.services.mcp.catalog import Catalog, read_catalog
from agentic.services.mcp.config import HttpEndpoint, Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.records import StoredServer
from agentic.storage.catalogue_store import PostgresCatalogueStore
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.storage.database import Database
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.pool import open_pool
from agentic.storage.server_store import PostgresServerStore

URL = "https://notes.vendor.example/mcp"
TOKEN_ENDPOINT = "https://login.vendor.example/token"
KEYS = VaultKeys.parse(base64.b64encode(bytes([7]) * 32).decode())
LAUNCH = StdioLaunch(command=("notes-server", "--quiet"))
NOTES = ServerConfig(server_id="notes", endpoint=HttpEndpoint(url=URL))
FILES = ServerConfig(server_id="files", owner=Owner.OPERATOR, endpoint=LAUNCH)


def tool(name: str, words: str = "As it was.", **more: Any) -> dict[str, Any]:
    """A tool as a server declares it."""
    return {"name": name, "description": words, "inputSchema": {"type": "object"}, **more}


def catalog(*tools: str | dict[str, Any], server_id: str = "notes") -> Catalog:
    """What a server offers that declares these."""
    return read_catalog(server_id, [tool(each) if isinstance(each, str) else each for each in tools])


@dataclass(kw_only=True)
class ServerRows:
    """The store, and ways to look behind it."""

    db: Database
    organization_id: UUID = field(default_factory=uuid4)
    admin: UUID = field(default_factory=uuid4)
    operator: UUID = field(default_factory=uuid4)
    """A member whose role is less than admin."""

    @property
    def store(self) -> PostgresServerStore:
        return PostgresServerStore(self.db, {"files": LAUNCH})

    async def observed(self, *tools: str | dict[str, Any], resources: bool = False) -> StoredServer:
        """The server `notes` has just shown these tools."""
        now = (await self.store.get(self.organization_id, "notes")).server
        seen = await self.store.observe(
            self.organization_id,
            "notes",
            catalog(*tools),
            resources=resources,
            endpoint_revision=now.endpoint_revision,
        )
        return seen.server

    async def active(self, *tools: str | dict[str, Any], resources: bool = False) -> StoredServer:
        """The server `notes`, active with these tools."""
        await self.store.register(self.organization_id, NOTES, connection_id=None, user_id=self.admin)
        return await self.activated(await self.observed(*tools, resources=resources))

    async def activated(self, server: StoredServer) -> StoredServer:
        """A server that was verified, with all that it offers."""
        assert server.offered_hash is not None
        return await self.store.activate(
            self.organization_id, server.server_id, offered_hash=server.offered_hash, user_id=self.admin
        )

    async def failed(self, times: int = 1) -> StoredServer:
        """The server `notes` after so many more probes came to nothing."""
        now = (await self.store.get(self.organization_id, "notes")).server
        for _ in range(times):
            now = await self.store.unreachable(
                self.organization_id,
                "notes",
                reason="connect",
                degrade_after=3,
                endpoint_revision=now.endpoint_revision,
            )
        return now

    async def off(self) -> set[str]:
        """The tools that are off for the next call of any run, in any process."""
        live = await PostgresCatalogueStore(self.db).live(self.organization_id)
        return {name.removeprefix("mcp.notes.") for name in live.off} - {"read_resource"}

    async def reads_resources(self) -> bool:
        """Whether the next call may read a resource of the server `notes`."""
        live = await PostgresCatalogueStore(self.db).live(self.organization_id)
        return "mcp.notes.read_resource" not in live.off

    async def key(self, organization_id: UUID | None = None, *, provider: str = "mcp") -> StoredConnection:
        """A connection that holds an API key."""
        return await self.connections.add(
            organization_id or self.organization_id, provider, ApiKey(value="tok-4711-abcdef"), label="Key"
        )

    async def client(self) -> StoredConnection:
        """A connection that holds a client's id and secret."""
        secret = OAuthSecret(client_id="client-7", client_secret="client-secret-of-ada")
        endpoint = TokenEndpoint(url=TOKEN_ENDPOINT)
        return await self.connections.add(self.organization_id, "mcp", secret, label="Client", endpoint=endpoint)

    @property
    def connections(self) -> ConnectionService:
        return ConnectionService(store=PostgresConnectionStore(self.db), keys=KEYS)

    async def run(self) -> UUID:
        """A run of the organization."""
        run = uuid4()
        await self.db.count(
            "insert into agent.runs (id, organization_id, request_key, request_digest, root_run_id, definition_name, definition) "
            "values (%(id)s, %(organization)s, %(key)s, 'd', %(id)s, 'a', '{}')",
            {"id": run, "organization": self.organization_id, "key": str(run)},
        )
        return run


@asynccontextmanager
async def server_rows(url: str) -> AsyncIterator[ServerRows]:
    """An organization with an admin and an operator, and no server yet."""
    async with open_pool(url, max_size=8) as pool:
        rows = ServerRows(db=Database(pool))
        members = PostgresMemberStore(rows.db)
        await members.put(rows.organization_id, rows.admin, Role.ADMIN)
        await members.put(rows.organization_id, rows.operator, Role.OPERATOR)
        yield rows
