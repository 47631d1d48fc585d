"""Where the events of a command go, so that a decision or a start is acted on at once and not at the next sweep.

The function server that the environment names, else the development services of the folder, when they work on the same database.
Otherwise the rows stay pending, and whoever runs the functions finds them (W1).
"""

import os
from collections.abc import Sequence
from pathlib import Path

from agentic.contract.events import Event
from agentic.services.outbox.service import EventBus
from agentic.storage.connection import describe

SERVER_VARIABLES = ("INNGEST_DEV", "INNGEST_BASE_URL", "INNGEST_EVENT_API_BASE_URL", "INNGEST_EVENT_KEY")


class NoFunctionServer(Exception):
    """Nobody is there to be told."""


class LeftToTheSweep:
    """The row stays pending, and whoever runs the functions finds it (W1)."""

    async def send(self, events: Sequence[Event]) -> None:
        """Refuse, so that the rows are not marked as sent."""
        raise NoFunctionServer


def bus_of(folder: Path, database_url: str) -> EventBus | None:
    """The bus, or ``None`` when nobody is there. May wait a few seconds for services that do not answer.

    Args:
        folder: of the embedded database and the identity.
        database_url: which the command works on. Services on another database are not told: a row would count as sent, and wait.
    """
    from agentic.local.dev.address import running

    named = any(os.environ.get(name) for name in SERVER_VARIABLES)
    found = None if named else running(folder)
    if not named and (found is None or found.database != describe(database_url)):
        return None
    from agentic.functions.bus import InngestBus
    from agentic.functions.serve import function_client
    from agentic.local.loopback import keep_off_proxies

    if found is None:
        return InngestBus(function_client())
    keep_off_proxies()
    return InngestBus(function_client(is_production=False, server_url=found.engine))
