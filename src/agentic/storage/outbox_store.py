"""The outbox in Postgres. The statements stand in ``queries/outbox.sql``."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentic.contract.events import Event, EventName
from agentic.storage.database import Database
from agentic.storage.encoding import text
from agentic.storage.queries import load_queries


class PostgresOutboxStore:
    """Implements ``OutboxStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("outbox")

    async def take(self, ids: Sequence[UUID], *, due: bool, age_s: float, again_s: float, limit: int) -> list[Event]:
        params = {"ids": list(ids), "due": due, "age_s": age_s, "again_s": again_s, "limit": limit}
        return [event_of(row) for row in await self._db.all(self._sql["take"], params)]

    async def sent(self, ids: Sequence[UUID]) -> None:
        await self._db.count(self._sql["sent"], {"ids": list(ids)})

    async def failed(self, ids: Sequence[UUID], error: str) -> None:
        await self._db.count(self._sql["failed"], {"ids": list(ids), "error": text(error)})


def event_of(row: Mapping[str, Any]) -> Event:
    """The event of a row of the outbox, whose columns may have come as JSON."""
    name, data = EventName(row["name"]), row["data"]
    return Event(
        id=row["id"],
        name=name,
        organization_id=row["organization_id"],
        run_id=row["run_id"],
        lane=data.get("lane", "interactive"),
        job_id=data.get("job_id"),
        told=_told(data) if name is EventName.ACCOUNT_EVENT else {},
    )


def _told(data: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in data.items() if name != "organization_id"}
