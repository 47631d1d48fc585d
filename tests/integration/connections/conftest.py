"""A vault over a real database, a token endpoint, and as many processes' worth of vaults as a test asks for."""

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.clock import SystemClock
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import StoredConnection
from agentic.services.connections.secrets import ApiKey, OAuthSecret
from agentic.services.connections.service import ConnectionService, TokenEndpoint
from agentic.services.connections.vault import Vault
from agentic.services.tools.connections import Account, Credential
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.storage.database import Database
from agentic.storage.pool import open_pool
from token_server import TokenServer, token_server

KEYS = ",".join(base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
FIRST, SECOND = KEYS.split(",")
CLIENT_SECRET, REFRESH = "client-secret-of-ada", "refresh-value-0"


@dataclass(kw_only=True)
class VaultStage:
    """One organization's connections, and ways to look behind them."""

    database_url: str
    database: Database
    tokens: TokenServer
    stack: AsyncExitStack
    organization_id: UUID = field(default_factory=uuid4)
    keys: VaultKeys = field(default_factory=lambda: VaultKeys.parse(FIRST))

    @property
    def store(self) -> PostgresConnectionStore:
        return PostgresConnectionStore(self.database)

    @property
    def service(self) -> ConnectionService:
        return ConnectionService(store=self.store, keys=self.keys)

    def endpoint(self) -> TokenEndpoint:
        return TokenEndpoint(url=self.tokens.token_endpoint, scopes=("mail.send",))

    async def key(self, value: str = "api-key-value-of-ada", *, label: str = "Ada", **said: Any) -> StoredConnection:
        """An API key of the provider ``mail``."""
        return await self.service.add(self.organization_id, "mail", ApiKey(value=value), label=label, **said)

    async def client(self) -> StoredConnection:
        """A client that asks for tokens itself."""
        secret = OAuthSecret(client_id="ada", client_secret=CLIENT_SECRET)
        return await self.service.add(self.organization_id, "mail", secret, label="Client", endpoint=self.endpoint())

    async def consent(self) -> StoredConnection:
        """A person's consent."""
        secret = OAuthSecret(client_id="ada", client_secret=CLIENT_SECRET, refresh_token=REFRESH)
        return await self.service.add(self.organization_id, "mail", secret, label="Consent", endpoint=self.endpoint())

    async def process(self, keys: VaultKeys | None = None) -> Vault:
        """A vault as another process would have it, with connections to the database of its own."""
        pool = await self.stack.enter_async_context(open_pool(self.database_url, max_size=2))
        vault = Vault(store=PostgresConnectionStore(Database(pool)), keys=keys or self.keys, clock=SystemClock())
        self.stack.push_async_callback(vault.aclose)
        return vault

    async def credential(self, vault: Vault, connection_id: UUID | None = None) -> Credential:
        """What a call gets for the provider ``mail``."""
        found = await vault.resolve(organization_id=self.organization_id, provider="mail", connection_id=connection_id)
        assert isinstance(found, Account)
        return found.credential

    async def row(self, connection_id: UUID) -> dict[str, Any]:
        """The whole row."""
        row = await self.database.one("select * from agent.connections where id = %(id)s", {"id": connection_id})
        assert row is not None
        return row

    async def change(self, statement: str, **params: Any) -> int:
        """Change rows behind everybody's back."""
        return await self.database.count(statement, params)


@pytest.fixture
async def stage(database: str) -> AsyncIterator[VaultStage]:
    async with AsyncExitStack() as stack:
        tokens = await stack.enter_async_context(token_server())
        pool = await stack.enter_async_context(open_pool(database, max_size=4))
        yield VaultStage(database_url=database, database=Database(pool), tokens=tokens, stack=stack)
