"""Retention and the sums by day in Postgres. The statements stand in ``queries/retention.sql``."""

from collections.abc import Sequence
from datetime import date
from typing import Any, LiteralString
from uuid import UUID

from agentic.services.retention.models import OutlivedTree, Removed, RetentionPeriods
from agentic.services.usage.rollup import DaySum
from agentic.storage.database import Database, Params
from agentic.storage.queries import load_queries


class PostgresRetentionStore:
    """Implements ``RetentionStore`` and ``RollupStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("retention")

    async def outlived_trees(self, *, days: int, with_bodies_elsewhere: bool, limit: int) -> Sequence[OutlivedTree]:
        params = {"days": days, "elsewhere": with_bodies_elsewhere, "limit": limit}
        return [
            OutlivedTree(
                organization_id=row["organization_id"],
                root_run_id=row["root_run_id"],
                run_ids=tuple(row["run_ids"]),
            )
            for row in await self._db.all(self._sql["outlived_trees"], params)
        ]

    async def forget_tree(self, tree: OutlivedTree, *, days: int) -> int:
        params = {
            "organization_id": tree.organization_id,
            "root_run_id": tree.root_run_id,
            "run_ids": list(tree.run_ids),
            "days": days,
        }
        return await self._removed("runs", ("forget_lines", "forget_tree_spans", "forget_runs"), params)

    async def drop_span_partition(self, *, days: int) -> str | None:
        row = await self._db.one(self._sql["drop_span_partition"], {"days": days})
        return None if row is None else row["name"]

    async def forget_spans(self, *, days: int, limit: int) -> int:
        return await self._removed("spans", ("forget_spans",), {"days": days, "limit": limit})

    async def forget_events(self, *, days: int, limit: int) -> int:
        return await self._removed("events", ("forget_events",), {"days": days, "limit": limit})

    async def forget_outbox(self, *, days: int, limit: int) -> int:
        return await self._removed("outbox", ("forget_outbox",), {"days": days, "limit": limit})

    async def forget_deliveries(self, *, days: int, limit: int) -> int:
        return await self._removed("deliveries", ("forget_deliveries",), {"days": days, "limit": limit})

    async def count(self, periods: RetentionPeriods, *, with_bodies_elsewhere: bool) -> Removed:
        row = await self._db.one(self._sql["count"], {**periods.model_dump(), "elsewhere": with_bodies_elsewhere})
        assert row is not None
        return Removed(**row)

    async def roll_up(self, *, days: int) -> int:
        row = await self._db.one(self._sql["roll_up"], {"days": days})
        assert row is not None
        return int(row["sums"])

    async def daily(self, organization_id: UUID, last: date | None, days: int) -> Sequence[DaySum]:
        params = {"organization_id": organization_id, "last": last, "days": days}
        return [DaySum(**row) for row in await self._db.all(self._sql["daily"], params)]

    async def _removed(self, counted: str, names: Sequence[str], params: Params) -> int:
        """Removals in one transaction that may remove append-only rows; what the last of them counted."""
        steps: list[tuple[LiteralString, dict[str, Any]]] = [(self._sql[name], dict(params)) for name in names]
        *_, last = await self._db.atomic([(self._sql["allow"], {}), *steps])
        assert last is not None
        return int(last[counted])
