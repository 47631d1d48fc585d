"""What a person sees of jobs, and settles about those nobody knows of (ADR 0009)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.services.provider_jobs.models import ProviderJob, Which
from agentic.services.provider_jobs.ports import OperatorStore

MIN_EVIDENCE_CHARS, MAX_EVIDENCE_CHARS = 3, 4000


class JobDesk:
    """Lists jobs and takes what an operator found out."""

    def __init__(self, store: OperatorStore, flush: Callable[[Sequence[UUID]], Awaitable[None]]) -> None:
        self._store = store
        self._flush = flush

    async def find(self, organization_id: UUID, *, which: Which = "all", limit: int = 100) -> Sequence[ProviderJob]:
        """Jobs, the latest first."""
        return await self._store.find(organization_id, which=which, limit=limit)

    async def show(self, organization_id: UUID, job_id: UUID) -> ProviderJob:
        """One job.

        Raises:
            NotFound: this organization has no such job.
        """
        job = await self._store.read(organization_id, job_id)
        if job is None:
            raise NotFound(f"there is no job {job_id}; 'agentic jobs list' shows those there are")
        return job

    async def drops(self, *, limit: int = 100) -> Sequence[dict[str, Any]]:
        """Deliveries that changed nothing, by day, provider and reason."""
        return await self._store.drops(limit=limit)

    async def not_taken(self, organization_id: UUID, job_id: UUID, *, user_id: UUID, evidence: str) -> None:
        """The provider never took the job: it fails at no cost, and what was held for it is free.

        Raises:
            NotFound, NotPermitted, Conflict: the person may not, or the job is none of which nobody knows.
        """
        event = await self._store.resolve_refused(organization_id, job_id, user_id=user_id, evidence=_written(evidence))
        if event is None:
            await self._say_why(organization_id, job_id)
        else:
            await self._flush([event])

    async def found(
        self, organization_id: UUID, job_id: UUID, provider_job_id: str, *, user_id: UUID, evidence: str
    ) -> None:
        """The provider has the job under this id; asking it tells the rest.

        Raises:
            NotFound, NotPermitted, Conflict: as ``not_taken``; or another job has that id.
        """
        bound = await self._store.resolve_bound(
            organization_id, job_id, provider_job_id=provider_job_id, user_id=user_id, evidence=_written(evidence)
        )
        if not bound:
            await self._say_why(organization_id, job_id)

    async def _say_why(self, organization_id: UUID, job_id: UUID) -> None:
        job = await self.show(organization_id, job_id)
        if job.unknown_at is None or job.state.terminal:
            raise Conflict(
                f"job {job_id} is none of which nobody knows; 'agentic jobs list --unknown' shows those that wait for you"
            )
        raise NotPermitted("settling a job of which nobody knows takes the role operator")


def _written(evidence: str) -> str:
    evidence = evidence.strip()
    if not MIN_EVIDENCE_CHARS <= len(evidence) <= MAX_EVIDENCE_CHARS:
        raise Conflict(f"write down what you saw: evidence has {MIN_EVIDENCE_CHARS} to {MAX_EVIDENCE_CHARS} characters")
    return evidence
