"""A process that renews one connection's token, for tests that kill it meanwhile."""

import asyncio
import os
import sys
from uuid import UUID

from agentic.contract.clock import SystemClock
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.vault import Vault
from agentic.services.tools.connections import Account
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.storage.database import Database
from agentic.storage.pool import open_pool


async def main(organization_id: UUID, provider: str) -> None:
    """Present the credential of the provider's connection."""
    async with open_pool(os.environ["AGENTIC_CHILD_DATABASE_URL"], max_size=2) as pool:
        vault = Vault(
            store=PostgresConnectionStore(Database(pool)), keys=VaultKeys.from_environment(), clock=SystemClock()
        )
        account = await vault.resolve(organization_id=organization_id, provider=provider, connection_id=None)
        assert isinstance(account, Account)
        await account.credential.present()


if __name__ == "__main__":
    asyncio.run(main(UUID(sys.argv[1]), sys.argv[2]))
