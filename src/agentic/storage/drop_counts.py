"""Counts of deliveries that changed nothing. What is counted at the same time is one statement, for all of it is a row or two."""

from collections import Counter
from collections.abc import Sequence

from agentic.contract.deliveries import DropReason
from agentic.contract.gathering import Gathering
from agentic.storage.database import Database
from agentic.storage.queries import load_queries


class DropCounts:
    """Counts drops by provider, reason and day. A count that was waited for is committed."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("webhooks")
        self._gathering = Gathering(self._add)

    async def add(self, provider: str, reason: DropReason) -> None:
        """One more."""
        await self._gathering.bring([(provider, reason)])

    async def _add(self, drops: Sequence[tuple[str, DropReason]]) -> None:
        counts = Counter(drops)
        params = {
            "providers": [provider for provider, _ in counts],
            "reasons": [str(reason) for _, reason in counts],
            "counts": list(counts.values()),
        }
        await self._db.count(self._sql["drop"], params)
