"""The model's words while it says them, for whoever watches: gathered, and written beside the segment.

Telling never delays and never fails a turn. What cannot be written is dropped with a line in the log: the answer itself goes into the
run's log with its append, and the gap shows in the offsets.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agentic.services.runs.events import WordsStore
from agentic.services.runs.models import Lease

_log = logging.getLogger(__name__)
GATHER_S = 0.25
"""How long words are gathered before they are told."""
GATHER_BYTES = 1024
"""Or how many bytes of them."""
PATIENCE_S = 1.0
"""How long an append waits for words under way, so that they are told before it."""


class Words:
    """The words of one segment. All of it runs in the segment's event loop.

    Args:
        store: takes them; ``None`` tells nothing.
        gather_s: see ``GATHER_S``.
        patience_s: see ``PATIENCE_S``.
    """

    def __init__(
        self,
        store: WordsStore | None,
        lease: Lease,
        *,
        gather_s: float = GATHER_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._store = store
        self._lease = lease
        self._gather_s = gather_s
        self._patience_s = patience_s
        self._held: list[str] = []
        self._bytes = 0
        self._request = self._offset = 0
        self._enough = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing = False

    def begin(self) -> None:
        """Another answer begins."""
        self._request += 1
        self._offset = 0

    def said(self, text: str) -> None:
        """The model said this; returns at once."""
        if self._store is None or not text:
            return
        self._held.append(text)
        self._bytes += len(text.encode(errors="replace"))
        if self._bytes >= GATHER_BYTES:
            self._enough.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell(self._store))

    def give_up(self) -> None:
        """The answer failed: what is not told of it will not be."""
        self._held, self._bytes = [], 0

    async def settle(self) -> None:
        """Wait, for a moment at most, until nothing is being written; what is still gathered stays for ``take``."""
        task, self._task = self._task, None
        if task is None:
            return
        if not self._writing:
            task.cancel()
        await asyncio.wait({task}, timeout=self._patience_s)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})

    def take(self) -> Sequence[Mapping[str, Any]]:
        """What is gathered and not told, for an append that is about to be written."""
        piece = self._piece()
        return () if piece is None else (piece,)

    async def _tell(self, store: WordsStore) -> None:
        while self._held and self._task is asyncio.current_task():
            if self._bytes < GATHER_BYTES:
                await self._gather()
            self._enough.clear()
            piece = self._piece()
            if piece is None:
                return
            self._writing = True
            try:
                await store.tell(self._lease, piece)
            except Exception as error:  # noqa: BLE001 - whatever it is, the answer itself is stored with its append
                _log.warning(
                    "words of run %s could not be told (%s); its answer is stored all the same",
                    self._lease.run_id,
                    type(error).__name__,
                )
            finally:
                self._writing = False

    async def _gather(self) -> None:
        try:
            async with asyncio.timeout(self._gather_s):
                await self._enough.wait()
        except TimeoutError:
            return

    def _piece(self) -> dict[str, Any] | None:
        text = "".join(self._held)
        self._held, self._bytes = [], 0
        if not text:
            return None
        piece = {"request": self._request, "offset": self._offset, "text": text}
        self._offset += len(text)
        return piece
