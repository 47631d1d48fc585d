"""One call for what many bring at the same time, so that a burst costs a few statements or requests and not one each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class _Batch(Generic[Thing]):
    """What waits for one call."""

    def __init__(self) -> None:
        self.things: list[Thing] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Gathering(Generic[Thing]):
    """Makes one call at a time; what is brought meanwhile goes together in the next.

    Args:
        do: takes what was brought, in the order in which it came; it bounds its own time.
    """

    def __init__(self, do: Callable[[Sequence[Thing]], Awaitable[None]]) -> None:
        self._do = do
        self._next: _Batch[Thing] | None = None
        self._doing: asyncio.Task[None] | None = None

    async def bring(self, things: Sequence[Thing]) -> None:
        """Return when the call that took these has ended. Whoever stops waiting takes nothing back: the call goes on for the others.

        Raises:
            Exception: what the call raised, to everybody whose things were in it.
        """
        if self._next is None:
            self._next = _Batch()
        batch = self._next
        batch.things.extend(things)
        if self._doing is None:
            self._doing = asyncio.create_task(self._drain(), name="gathering")
        await asyncio.shield(batch.done)

    async def _drain(self) -> None:
        try:
            while self._next is not None:
                batch, self._next = self._next, None
                await self._take(batch)
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            self._doing = None

    async def _take(self, batch: _Batch[Thing]) -> None:
        try:
            await self._do(batch.things)
        except asyncio.CancelledError:
            batch.done.cancel()
            raise
        except Exception as problem:  # noqa: BLE001 - everybody who brought something is told
            batch.done.set_exception(problem)
            batch.done.exception()  # heard, also when nobody waits any more
        else:
            batch.done.set_result(None)

    def _abandon(self) -> None:
        """The loop ends, and nobody is left to take what waits."""
        if self._next is not None:
            self._next.done.cancel()
            self._next = None
