"""Tools as the database knows them. The statements stand in ``queries/catalogue.sql``."""

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from agentic.services.tools.models import ToolSpec
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb
from agentic.storage.queries import load_queries


class PostgresCatalogueStore:
    """Publishes contracts, and reads and changes live state."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("catalogue")

    async def publish(self, specs: Iterable[ToolSpec]) -> None:
        """Store contracts of this deployment, each once."""
        contracts = [
            {
                "contract_hash": spec.contract_hash,
                "name": spec.name,
                "version": spec.version,
                "spec": spec.contract_text(),
            }
            for spec in specs
        ]
        await self._db.count(self._sql["publish"], {"contracts": jsonb(contracts)})

    async def tools(self, organization_id: UUID) -> list[dict[str, Any]]:
        """The newest contract of each tool with its live state."""
        rows = await self._db.all(self._sql["list"], {"organization_id": organization_id})
        return [_tool(row) for row in rows]

    async def set_enabled(
        self, organization_id: UUID, tool: str, *, enabled: bool, user_id: UUID | None = None
    ) -> None:
        """Enable or disable a tool in an organization."""
        params = {"organization_id": organization_id, "tool": tool, "enabled": enabled, "user_id": user_id}
        await self._db.count(self._sql["set_state"], params)

    async def set_grant(
        self, organization_id: UUID, definition: str, tool: str, *, active: bool, user_id: UUID | None = None
    ) -> None:
        """Give a tool to a definition, or take it away. Counts at the next call, also of a run that waits (D2)."""
        params = {
            "organization_id": organization_id,
            "definition": definition,
            "tool": tool,
            "user_id": user_id,
            "state": "active" if active else "revoked",
        }
        await self._db.count(self._sql["set_grant"], params)


def _tool(row: dict[str, Any]) -> dict[str, Any]:
    spec = ToolSpec.model_validate(json.loads(row["spec"]))
    return {
        "name": spec.name,
        "version": spec.version,
        "description": spec.description,
        "side_effects": str(spec.side_effects),
        "idempotency": str(spec.idempotency),
        "risk": str(spec.risk),
        "mode": str(spec.mode),
        "vendor_key_ttl_s": spec.vendor_key_ttl_s,
        "contract_hash": row["contract_hash"],
        "enabled": row["enabled"] and row["withdrawn_at"] is None,
    }
