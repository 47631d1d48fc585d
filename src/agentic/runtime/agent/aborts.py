"""How a segment is stopped from inside the framework's loop."""

import asyncio
from typing import Literal

AbortKind = Literal["ceiling", "cancelled", "failed", "lease_lost", "slice"]


class SegmentAbort(BaseException):
    """Ends the segment at once, with nothing written by the framework (ADR 0003).

    A ``BaseException``, because the loop turns every ``Exception`` of a tool into text for the model.
    """

    def __init__(self, kind: AbortKind, code: str, cause: BaseException | None = None) -> None:
        super().__init__(f"{kind}: {code}")
        self.kind = kind
        self.code = code
        self.cause = cause


class Leave:
    """Whether nobody waits for the model's answer any more, and why. A call in flight is not its business: that settles."""

    def __init__(self) -> None:
        self.abort: SegmentAbort | None = None
        self._asked = asyncio.Event()

    def ask(self, kind: AbortKind, code: str) -> None:
        """Leave the model alone; the first reason counts."""
        if self.abort is None:
            self.abort = SegmentAbort(kind, code)
            self._asked.set()

    async def wait(self) -> SegmentAbort:
        """Wait until it is left; why."""
        await self._asked.wait()
        assert self.abort is not None
        return self.abort


class SegmentStop:
    """The stop of one segment; the first writer wins, later ones are ignored."""

    def __init__(self) -> None:
        self.abort: SegmentAbort | None = None
        self.cancelled = asyncio.Event()
        """Set when a person cancelled the run; what runs at that moment may look at it."""
        self.leave = Leave()
        """Asked when the run was cancelled or its lease is lost: an answer of the model is not waited for."""
        self.lost = False
        """The lease is lost, and the segment's task was cancelled for it; whatever stopped it before."""
        self.letting_go = False
        """Set before the statement that gives the lease back: a renewal that finds none from then on is no loss, and the statement
        itself says whether it was still held."""

    def record(self, kind: AbortKind, code: str, cause: BaseException | None = None) -> SegmentAbort:
        """Remember this stop unless one is recorded already, and return the one that counts."""
        if self.abort is None:
            self.abort = SegmentAbort(kind, code, cause)
        return self.abort

    def check(self) -> None:
        """Raise the recorded stop, if any."""
        if self.abort is not None:
            raise self.abort
