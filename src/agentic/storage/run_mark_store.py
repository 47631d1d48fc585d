"""What runs remember of MCP servers, in Postgres. The statements stand in ``queries/servers.sql``."""

from uuid import UUID

from agentic.storage.database import Database
from agentic.storage.queries import load_queries


class PostgresRunMarks:
    """Implements ``RunMarks``: every worker of a run sees the same marks, and they end with the run."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("servers")

    async def unauthorized(self, *, run_id: UUID, server_id: str) -> bool:
        row = await self._db.one(self._sql["unauthorized"], {"run_id": run_id, "server_id": server_id})
        return row is not None and row["gave_up"] is True

    async def take_renewal(self, *, run_id: UUID, server_id: str) -> bool:
        return await self._db.count(self._sql["take_renewal"], {"run_id": run_id, "server_id": server_id}) == 1

    async def give_up(self, *, run_id: UUID, server_id: str) -> None:
        await self._db.count(self._sql["give_up"], {"run_id": run_id, "server_id": server_id})
