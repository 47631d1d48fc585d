"""How many servers are opened and read at the same time, so that a small machine is not brought to a halt by its own start."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

PREPARATIONS: Final = 8
PROCESS_STARTS: Final = 2
SHARE: Final = 4
"""Of the preparations, for one organization: its servers may hang as long as they like and keep no other's from being opened."""


class Slots:
    """Shared by everything one process opens. Waiting here comes before, and counts for none of, a server's own time-outs.

    Args:
        within: slots that are taken besides, after these.
    """

    def __init__(
        self,
        *,
        preparations: int = PREPARATIONS,
        process_starts: int = PROCESS_STARTS,
        within: "Slots | None" = None,
    ) -> None:
        self._preparations = asyncio.Semaphore(preparations)
        self._process_starts = asyncio.Semaphore(process_starts)
        self._within = within

    def share(self) -> "Slots":
        """What one organization may take of these."""
        return Slots(preparations=SHARE, within=self)

    @asynccontextmanager
    async def preparing(self, *, starts_process: bool) -> AsyncIterator[None]:
        """Hold a slot for the opening of a session and the reading of its catalog.

        Args:
            starts_process: one of the two slots for starts is taken first, so that queued processes keep no HTTP server waiting.
        """
        async with AsyncExitStack() as held:
            if starts_process:
                await held.enter_async_context(self._process_starts)
            await held.enter_async_context(self._preparations)
            if self._within is not None:
                await held.enter_async_context(self._within.preparing(starts_process=starts_process))
            yield
