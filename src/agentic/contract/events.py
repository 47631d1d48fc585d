"""Events: nudges that carry ids and mean "look at this row". The row is the truth (W1)."""

from collections.abc import Mapping
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
    ACCOUNT_EVENT = "agentic/account.event.v1"
    """A provider told something of a connected account; for functions of the product's own."""


class Event(Value):
    """One outbox row, and the event sent for it."""

    id: UUID = Field(default_factory=uuid4)
    name: EventName
    organization_id: UUID
    run_id: UUID | None = None
    """``None`` for what is about no run."""
    lane: str = "interactive"
    job_id: UUID | None = None
    """Our id of a provider's job, never the provider's."""
    told: Mapping[str, str] = Field(default_factory=dict)
    """Of an account: the connection, the provider, its name of what happened, and its ids. No word of a message."""

    def data(self) -> dict[str, str]:
        """What travels: ids alone."""
        ids = {"organization_id": str(self.organization_id), **self.told}
        if self.run_id is not None:
            ids |= {"run_id": str(self.run_id), "lane": self.lane}
        return ids if self.job_id is None else {**ids, "job_id": str(self.job_id)}
