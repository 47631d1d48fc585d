"""What happened to a run, as whoever watches it reads it: numbered rows without gaps (ADR 0031).

An event says who and how. What a call was given and what it returned stays in its own rows; only the model's own words are told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from agentic.services.runs.models import Lease


class RunEventKind(StrEnum):
    """What is told of a run beside its calls, whose seven names are ``CallEventName``."""

    STARTED = "run.started"
    SEGMENT_STARTED = "segment.started"
    """Somebody leads the run. ``after_lost``: the leader before let the lease run out."""
    PARKED = "run.parked"
    RELEASED = "run.released"
    """The segment ended in order, or after a fault; the run comes back at ``due_at``, or at once."""
    CANCEL_REQUESTED = "run.cancel_requested"
    SUCCEEDED = "run.succeeded"
    FAILED = "run.failed"
    CANCELLED = "run.cancelled"
    UNCERTAIN = "run.uncertain"
    """Whether a call of the run has an outcome nobody knows, when that changes."""
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_CANCELLED = "approval.cancelled"
    MESSAGE_STORED = "message.stored"
    """An answer of the model is in the log, whole; the words told of it before stand."""
    TEXT = "text"
    """Words of an answer under way, from ``offset`` characters on; a gap in the offsets is words that were not told."""
    TEXT_RESET = "text.reset"
    """The words since the last stored message are superseded: their answer was given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """An event on its way into a run; the store numbers it."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvent:
    """One event. A reader that meets a kind it does not know leaves it alone: a later release may have written it."""

    seq: int
    """From 1, in the order of the commits, without gaps; those whose time is over are gone from the front."""
    kind: str
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvents:
    """Some events of a run, and where it stands with them."""

    events: Sequence[RunEvent]
    state: str
    more: bool
    """There are more than were asked for."""

    @property
    def over(self) -> bool:
        """The run has ended and these are its last."""
        return not self.more and self.state in ("succeeded", "failed", "cancelled")


class RunEventReader(Protocol):
    """Reads the events of a run."""

    async def events(self, organization_id: UUID, run_id: UUID, *, after: int, limit: int) -> RunEvents:
        """The events behind one, in order.

        Args:
            after: ``seq`` of the last one seen; 0 for none.
            limit: how many at most.

        Raises:
            NotFound: no such run in this organization; somebody else's looks the same (T1).
        """
        ...


class WordsStore(Protocol):
    """Takes the words of a model while it says them."""

    async def tell(self, lease: Lease, data: Mapping[str, Any]) -> bool:
        """Write one event ``text`` beside the segment; ``False`` when the segment does not lead the run any more."""
        ...
