"""Sending the events of committed changes: at once by whoever committed, again by the sweep (W1).

An event that was sent but not marked is sent again under the same id; receivers look at the row, so it changes nothing but speed.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import RetryLater
from agentic.contract.events import Event
from agentic.contract.gathering import Gathering

_log = logging.getLogger(__name__)
AGAIN_S = 30.0
SEND_S = 1.0
"""How long the bus has for events that somebody waits for, and how long anybody waits; what did not get there goes with the next sweep."""


class OutboxStore(Protocol):
    """Rows on their way."""

    async def take(self, ids: Sequence[UUID], *, due: bool, age_s: float, again_s: float, limit: int) -> list[Event]:
        """Take pending rows to send: those named, and with ``due`` those whose time has come."""
        ...

    async def sent(self, ids: Sequence[UUID]) -> None:
        """Mark rows as arrived."""
        ...

    async def failed(self, ids: Sequence[UUID], error: str) -> None:
        """Note why rows have not arrived."""
        ...


class EventBus(Protocol):
    """Where events go."""

    async def send(self, events: Sequence[Event]) -> None:
        """Hand the events over; raises when they did not arrive."""
        ...


class Outbox:
    """Moves events from the table to the bus.

    Args:
        store: the rows.
        bus: where they go.
        send_s: the bound on ``send``, in seconds.
    """

    def __init__(self, *, store: OutboxStore, bus: EventBus, send_s: float = SEND_S) -> None:
        self._store = store
        self._bus = bus
        self._send_s = send_s
        self._gathering = Gathering(self._send_in_time)

    async def send(self, events: Sequence[Event]) -> None:
        """Send events whose rows were just committed, in one request with those of everybody who committed meanwhile.

        The rows are due as they were committed: if the process dies here, or bus or database do not answer in time, the next sweep sends
        them. A sweep at this very moment sends them as well.
        """
        if not events:
            return
        try:
            async with asyncio.timeout(self._send_s):
                await self._gathering.bring(events)
        except (TimeoutError, RetryLater):
            _log.warning("%d events were not sent in time; the sweep sends them", len(events))

    async def flush(self, ids: Sequence[UUID]) -> None:
        """Send rows that were just committed. A bus that does not answer loses nothing: the sweep sends them later."""
        if ids:
            await self._send(await self._store.take(ids, due=False, age_s=0, again_s=AGAIN_S, limit=len(ids)))

    async def sweep(self, *, age_s: float = 0, limit: int = 200) -> int:
        """Send again what is still pending. Returns how many arrived."""
        events = await self._store.take([], due=True, age_s=age_s, again_s=AGAIN_S, limit=limit)
        return await self._send(events)

    async def _send_in_time(self, events: Sequence[Event]) -> None:
        # bounded by itself: whoever brings events stops waiting, and more of them would gather behind a bus that stands still
        await self._send(events, within_s=self._send_s)

    async def _send(self, events: Sequence[Event], *, within_s: float | None = None) -> int:
        if not events:
            return 0
        ids = [event.id for event in events]
        try:
            async with asyncio.timeout(within_s):
                await self._bus.send(events)
        except Exception as error:  # the rows stay pending; the next sweep tries again
            _log.warning(
                "%d events could not be sent (%s); they are sent again later", len(events), type(error).__name__
            )
            await self._store.failed(ids, type(error).__name__)
            return 0
        await self._store.sent(ids)
        return len(ids)
