"""What a provider's silence leaves: jobs are asked about, jobs nobody knows of go to an operator, unsettled ones are asked for again.

Every step is safe to run at any time, twice at once too. A callback that comes after an answer is a duplicate of it, and the other way.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from agentic.contract.deliveries import Unreadable
from agentic.contract.errors import AgenticError, StorageUnavailable
from agentic.services.provider_jobs.intake import WebhookIntake
from agentic.services.provider_jobs.models import ProviderJob
from agentic.services.provider_jobs.ports import JobProvider, ReconcilingStore

_log = logging.getLogger(__name__)
QUIET_S = 300.0
"""A settling that was asked for within this time is left alone."""
ASKED_AT_ONCE = 20
"""Questions to one provider in a sweep: FullEnrich's account takes 60 requests a minute over everything."""
LIMIT = 200


class NotAnswered(AgenticError):
    """A provider could not be asked about a job, or its answer is not to be understood; the job stands as it stood."""


class JobReconciling:
    """The sweep over jobs."""

    def __init__(
        self,
        *,
        store: ReconcilingStore,
        providers: Sequence[JobProvider],
        intake: WebhookIntake,
        flush: Callable[[Sequence[UUID]], Awaitable[None]],
        quiet_s: float = QUIET_S,
    ) -> None:
        self._store = store
        self._providers = providers
        self._intake = intake
        self._flush = flush
        self._quiet_s = quiet_s

    async def sweep(self) -> int:
        """Ask, hand over and nudge; how many jobs moved."""
        moved = 0
        for provider in self._providers:
            moved += await self._ask(provider)
            unknown = await self._store.become_unknown(provider.name, window_s=provider.window_s)
            for job_id in unknown:
                _log.warning("nobody knows what became of job %s of %s; an operator finds out", job_id, provider.name)
            moved += len(unknown)
        nudges = await self._store.nudge_unsettled(quiet_s=self._quiet_s, limit=LIMIT)
        await self._flush(nudges)
        return moved + len(nudges)

    async def ask_about(self, organization_id: UUID, job_id: UUID) -> bool:
        """Ask about one job now; whether it ended.

        Raises:
            NotAnswered: says why, for a person.
        """
        only = (organization_id, job_id)
        return any(
            [
                await self._about(provider, job)
                for provider in self._providers
                for job in await self._taken(provider, only=only)
            ]
        )

    async def _ask(self, provider: JobProvider) -> int:
        """Ask about silent jobs; a provider that cannot be asked is asked again later, and costs the others nothing."""
        ended = 0
        for job in await self._taken(provider):
            try:
                ended += await self._about(provider, job)
            except NotAnswered as problem:
                _log.warning("%s", problem)
        return ended

    async def _taken(self, provider: JobProvider, *, only: tuple[UUID, UUID] | None = None) -> list[ProviderJob]:
        return await self._store.take_silent(
            provider.name,
            window_s=provider.window_s,
            again_s=provider.ask_every_s,
            limit=ASKED_AT_ONCE,
            only=only,
        )

    async def _about(self, provider: JobProvider, job: ProviderJob) -> bool:
        if job.provider_job_id is None:
            return False
        try:
            report = await provider.ask(job.provider_job_id)
            if report is None:
                return False
            told = f"{report.delivery_id}:{report.cost}"
            dropped = await self._intake.take(
                provider.name, str(job.id), report, body_hash=hashlib.sha256(told.encode()).hexdigest()
            )
        except StorageUnavailable:
            raise
        except (AgenticError, Unreadable) as error:
            raise NotAnswered(f"job {job.id} of {provider.name} could not be asked about: {error}") from error
        return dropped is None
