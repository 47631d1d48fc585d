"""Events of accounts in Postgres. The statements stand in ``queries/webhooks.sql``."""

from agentic.contract.deliveries import DropReason
from agentic.contract.events import EventName
from agentic.services.connections.account_events import AccountEvent, Told
from agentic.storage.database import Database
from agentic.storage.drop_counts import DropCounts
from agentic.storage.encoding import jsonb, text
from agentic.storage.outbox_store import event_of
from agentic.storage.queries import load_queries


class PostgresAccountEventStore:
    """Implements ``AccountEventStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("webhooks")
        self._drops = DropCounts(database)

    async def tell(self, provider: str, event: AccountEvent, *, body_hash: str) -> Told:
        params = {
            "provider": provider,
            "account": jsonb(dict(event.account)),
            "delivery_id": text(event.delivery_id),
            "type": text(event.type),
            "at": event.at,
            "ends_consent": event.ends_consent,
            "object_id": None if event.object_id is None else text(event.object_id),
            "truncated": event.truncated,
            "body_hash": body_hash,
            "event_name": str(EventName.ACCOUNT_EVENT),
        }
        row = await self._db.one(self._sql["tell"], params)
        assert row is not None
        return Told(
            dropped=_dropped(row["known"], row["fresh"], row["events"]), events=tuple(map(event_of, row["events"]))
        )

    async def count_drop(self, provider: str, reason: DropReason) -> None:
        await self._drops.add(provider, reason)


def _dropped(known: int, fresh: int, events: list[object]) -> DropReason | None:
    if not known:
        return DropReason.UNKNOWN_ACCOUNT
    if not fresh:
        return DropReason.DUPLICATE
    return None if events else DropReason.LATE
