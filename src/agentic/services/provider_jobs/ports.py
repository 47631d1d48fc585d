"""The store of provider jobs."""

from typing import Protocol
from uuid import UUID

from agentic.services.provider_jobs.models import JobMove, NewJob, ProviderJob


class JobReader(Protocol):
    """Tells where a job stands; all that whoever waits for one needs."""

    async def read(self, organization_id: UUID, job_id: UUID) -> ProviderJob | None:
        """One job; ``None`` when this organization has no such job (T1)."""
        ...


class JobStore(JobReader, Protocol):
    """Every write is one compare-and-set; a job of another organization looks like a missing one."""

    async def submit(self, job: NewJob) -> bool:
        """Reserve a job; ``True`` for whoever did, who alone calls the provider.

        Raises:
            NotFound: neither the job nor its run is there in this organization.
        """
        ...

    async def bind(self, organization_id: UUID, job_id: UUID, provider_job_id: str) -> bool:
        """Note the provider's own id; ``False`` when one is known already.

        Raises:
            Conflict: another job of this provider has that id.
        """
        ...

    async def keep_result(self, organization_id: UUID, job_id: UUID, *, digest: str, body: str) -> None:
        """Keep a body that is too large for the job's row, once; before the move that names it."""
        ...

    async def move(self, organization_id: UUID, job_id: UUID, move: JobMove) -> UUID | None:
        """Make a transition if the job may make it, with the event that a terminal one leaves.

        Returns:
            The event's id, to be sent; ``None`` when nothing ended: the job may not move so, is not there, or goes on.
        """
        ...
