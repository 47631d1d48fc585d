"""A provider's job: one row, which is the truth; its event is a nudge (W1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from agentic.contract.deliveries import DropReason
from agentic.contract.errors import AgenticError
from agentic.contract.events import Event


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
    contact_refs: Sequence[str] | None = None
    note: str | None = None
    """Why its submit was not confirmed, as far as the answer said."""
    late_report: Mapping[str, Any] | None = None
    """What a report after the end said otherwise; shown, never charged."""
    unknown_at: datetime | None = None
    """Since when nobody knows whether the provider ever accepted it."""
    asks: int = 0
    settle_failed_at: datetime | None = None
    parked_at: datetime | None = None
    """When a run first parked on it; a job is waited for once."""


def job_name(job_id: UUID) -> str:
    """What a provider is told to call a job, so that a signed body says itself which job it is about."""
    return f"agentic:{job_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCost:
    """What a provider reported a job to cost."""

    quantity: Decimal
    unit: str
    """What is counted, as ``agentic prices`` names it."""

    def stored(self) -> dict[str, str]:
        """The form of the job's row; the number stays exact."""
        return {"quantity": str(self.quantity), "unit": self.unit}


@dataclass(frozen=True, kw_only=True, slots=True)
class JobReport:
    """What a provider says of one job, read from a body that was verified, or from its answer to a question.

    Attributes:
        provider_job_id: the provider's own id of the job.
        name: what the body calls the job; ``None`` when it does not say.
        result: the whole report as plain data.
        cost: ``None`` when the report names none.
        delivery_id: the same for every delivery of one and the same report.
    """

    provider_job_id: str
    name: str | None
    state: JobState
    result: Any
    cost: JobCost | None
    delivery_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """What became of a report.

    Attributes:
        dropped: why nothing ended; ``None`` when this report ended the job.
        events: committed with it and to be sent, when it did: the job's own, and the wake-ups of runs that are parked on it.
    """

    dropped: DropReason | None
    events: tuple[Event, ...] = ()


class Settlement(StrEnum):
    """What became of an attempt to settle a job."""

    SETTLED = "settled"
    NOTHING_TO_DO = "nothing_to_do"
    """The job is settled already, has not ended, or is not there."""
    UNCOUNTABLE = "uncountable"
    """No price covers what the provider reported."""


Which = Literal["all", "open", "unknown", "unsettled"]
"""Jobs a person looks for: those that go on, those nobody knows of, those whose cost is not settled."""


class ResultMissing(AgenticError):
    """A job names a body that is not stored: a fault of the storage, never an empty result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmittingCall:
    """The claimed call that submits a job; its claim is found by the epoch, which no other claim has."""

    organization_id: UUID
    run_id: UUID
    tool: str
    epoch: int
    attempt: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserved:
    """A reserved job, and whether this call reserved it, which alone lets it ask the provider."""

    job: ProviderJob
    first: bool
