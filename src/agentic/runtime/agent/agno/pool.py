"""Model objects and the connections their turns opened, kept for the next turn of the same event loop.

A provider client costs up to a tenth of a second of processor time to make; a turn's copy of a model must not make its own.
"""

import asyncio
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from agno.models.base import Model

from agentic.runtime.agent.agno.providers import Models, resolve

_CLIENTS = ("async_client", "client")


class PooledModel:
    """One model of one event loop."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.clients: dict[str, Any] = {}
        """Clients that copies opened, by attribute; those of the user's own object are not among them."""

    def keep(self, copy: Model) -> None:
        """Keep what a turn's copy opened."""
        for name in _CLIENTS:
            if getattr(self.model, name, None) is None and getattr(copy, name, None) is not None:
                self.clients[name] = getattr(copy, name)

    async def aclose(self) -> None:
        """Close what copies opened."""
        while self.clients:
            _, client = self.clients.popitem()
            with suppress(
                Exception
            ):  # nothing is waiting on these connections; one that fails to close is closed enough
                if hasattr(client, "aio"):
                    await client.aio.aclose()
                elif asyncio.iscoroutinefunction(client.close):
                    await client.close()
                else:
                    client.close()


class ModelPool:
    """The models of one agent loop."""

    def __init__(self, models: Models) -> None:
        self._models = dict(models)
        self._pooled: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, PooledModel]] = WeakKeyDictionary()

    def check(self, name: str) -> None:
        """Raise ``ProgramFault`` when the model cannot be made."""
        resolve(name, self._models)

    def get(self, name: str) -> PooledModel:
        """The model of this name in the running event loop, made at its first use.

        Raises:
            ProgramFault: when it cannot be made.
        """
        pooled = self._pooled.setdefault(asyncio.get_running_loop(), {})
        if name not in pooled:
            pooled[name] = PooledModel(resolve(name, self._models))
        return pooled[name]

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        for pooled in self._pooled.pop(asyncio.get_running_loop(), {}).values():
            await pooled.aclose()
