"""Events of runs in Postgres. The statements stand in ``queries/events.sql``; most events are written by triggers."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentic.services.runs.events import NewEvent, RunEvent, RunEventKind, RunEvents
from agentic.services.runs.models import Append, Lease
from agentic.services.tools.call_events import CallEvent
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb
from agentic.storage.queries import load_queries
from agentic.storage.run_rows import no_run


class PostgresEventStore:
    """Implements ``RunEventReader`` and ``WordsStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("events")

    async def events(self, organization_id: UUID, run_id: UUID, *, after: int, limit: int) -> RunEvents:
        params = {"organization_id": organization_id, "run_id": run_id, "after": after, "limit": limit + 1}
        rows = await self._db.all(self._sql["read"], params)
        if not rows:
            raise no_run(run_id)
        found = [
            RunEvent(seq=row["seq"], kind=row["kind"], at=row["at"], data=row["data"])
            for row in rows
            if row["seq"] is not None
        ]
        return RunEvents(events=found[:limit], state=rows[0]["state"], more=len(found) > limit)

    async def tell(self, lease: Lease, data: Mapping[str, Any]) -> bool:
        params = {
            "organization_id": lease.organization_id,
            "run_id": lease.run_id,
            "fence": lease.fence,
            "data": jsonb({**data, "segment": lease.fence}),
        }
        return await self._db.count(self._sql["tell"], params) == 1


def event_column(lease: Lease, append: Append) -> str:
    """What an append tells: the last words of an answer, that it is stored, then its calls."""
    words = [NewEvent(kind=RunEventKind.TEXT, data={**said, "segment": lease.fence}) for said in append.words]
    stored = [
        NewEvent(kind=RunEventKind.MESSAGE_STORED, data={"message_id": message.id, "role": message.role})
        for message in append.messages
        if message.role == "assistant"
    ]
    told: Sequence[NewEvent] = [*words, *stored, *map(_call, append.trail.events)]
    return jsonb([{"n": n, "kind": str(event.kind), "data": dict(event.data)} for n, event in enumerate(told)])


def _call(event: CallEvent) -> NewEvent:
    fields = event.fields()
    del fields["run_id"]
    return NewEvent(kind=event.name, data=fields)
