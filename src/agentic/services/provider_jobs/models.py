"""A provider's job: one row, which is the truth; its event is a nudge (W1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class JobState(StrEnum):
    """Where a job stands. It goes forward only; a terminal state stays."""

    SUBMITTED = "submitted"
    """Reserved. Whether the provider accepted it is known once its own id is."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """The provider stopped it; no failure, and not to be tried again as one."""

    @property
    def terminal(self) -> bool:
        """Whether the job has ended."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """What is reserved before the provider is called."""

    id: UUID
    """Ours, minted before the provider answers: what waits and callbacks are matched by."""
    organization_id: UUID
    run_id: UUID
    """The run that submits; the cost belongs to its tree."""
    provider: str
    tool_call_id: UUID | None = None
    contact_refs: Sequence[str] | None = None
    """References of the request in its order, for a provider that answers by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobMove:
    """One transition with all that goes with it, so that one report's money never stands beside another's answer.

    Attributes:
        result: at most 32 KiB as JSON; a larger one is kept first, and ``result_digest`` names it.
        cost: what the provider reported.
    """

    state: JobState
    result: Any = None
    result_digest: str | None = None
    cost: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderJob:
    """A job as it is stored. ``now`` is the database's time of the read."""

    id: UUID
    organization_id: UUID
    root_run_id: UUID
    run_id: UUID
    provider: str
    provider_job_id: str | None
    state: JobState
    result: Any
    result_digest: str | None
    cost: Mapping[str, Any] | None
    usage_id: UUID | None
    submitted_at: datetime
    terminal_at: datetime | None
    now: datetime
