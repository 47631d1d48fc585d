"""How many servers are opened and read at the same time, so that a small machine is not brought to a halt by its own start."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

PREPARATIONS: Final = 8
PROCESS_STARTS: Final = 2


class Slots:
    """Shared by everything one process opens. Waiting here comes before, and counts for none of, a server's own time-outs."""

    def __init__(self, *, preparations: int = PREPARATIONS, process_starts: int = PROCESS_STARTS) -> None:
        self._preparations = asyncio.Semaphore(preparations)
        self._process_starts = asyncio.Semaphore(process_starts)

    @asynccontextmanager
    async def preparing(self, *, starts_process: bool) -> AsyncIterator[None]:
        """Hold a slot for the opening of a session and the reading of its catalog.

        Args:
            starts_process: one of the two slots for starts is taken first, so that queued processes keep no HTTP server waiting.
        """
        if not starts_process:
            async with self._preparations:
                yield
            return
        async with self._process_starts, self._preparations:
            yield
