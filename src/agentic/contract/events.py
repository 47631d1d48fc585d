"""Events: nudges that carry ids and mean "look at this row". The row is the truth (W1)."""

from enum import StrEnum
from uuid import UUID, uuid4

from pydantic import Field

from agentic.contract.values import Value


class EventName(StrEnum):
    """Names with their version in them; a change of data is a new name."""

    RUN_REQUESTED = "agentic/run.requested.v1"
    RUN_DECIDED = "agentic/run.decided.v1"
    RUN_NUDGED = "agentic/run.nudged.v1"
    PROVIDER_JOB_COMPLETED = "agentic/provider_job.completed.v1"
    """A provider's job has ended, however; ``job_id`` names it."""


class Event(Value):
    """One outbox row, and the event sent for it."""

    id: UUID = Field(default_factory=uuid4)
    name: EventName
    organization_id: UUID
    run_id: UUID
    lane: str = "interactive"
    job_id: UUID | None = None
    """Our id of a provider's job, never the provider's."""

    def data(self) -> dict[str, str]:
        """What travels: ids alone."""
        ids = {"organization_id": str(self.organization_id), "run_id": str(self.run_id), "lane": self.lane}
        return ids if self.job_id is None else {**ids, "job_id": str(self.job_id)}
