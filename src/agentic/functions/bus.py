"""Events to Inngest: the outbox's bus. An event's id is its outbox row's, so a second send within a day starts nothing twice."""

from collections.abc import Sequence
from typing import cast

import inngest

from agentic.contract.errors import RetryLater
from agentic.contract.events import Event


class EngineUnreachable(RetryLater):
    """The function server did not take the events; they stay in the outbox."""


class InngestBus:
    """Implements ``EventBus``."""

    def __init__(self, client: inngest.Inngest) -> None:
        self._client = client

    async def send(self, events: Sequence[Event]) -> None:
        """Hand the events over.

        Raises:
            EngineUnreachable: nothing is lost; the sweep sends them again.
        """
        batch = [
            inngest.Event(name=event.name, id=str(event.id), data=cast("dict[str, inngest.JSON]", event.data()))
            for event in events
        ]
        try:
            await self._client.send(batch)
        except Exception as error:
            raise EngineUnreachable(
                "the function server does not answer; check INNGEST_DEV or INNGEST_BASE_URL, and that a server runs there"
            ) from error
