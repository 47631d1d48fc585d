"""The provider's side of the story: the stand-in that takes batches and reports them, and what is booked of its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from agentic.bootstrap import Platform
from agentic.local.providers.fullenrich import Batch, FullEnrichStandIn
from agentic.local.providers.fullenrich.reporting import address_of
from agentic.services.provider_jobs.fullenrich.submit import PROVIDER
from agentic.services.provider_jobs.models import ProviderJob, job_name
from agentic.services.usage.models import UsageLine
from agentic.storage.usage_store import PostgresUsageStore

CREDIT = Decimal("0.05")
"""Dollars; the price the demo sets where nobody has set one."""
UNIT = "credit"
_NAMED = job_name(UUID(int=0)).removesuffix(str(UUID(int=0)))
_LINES = 1000


async def price_credits(usage: PostgresUsageStore, organization_id: UUID) -> None:
    """Set what a credit costs the organization, unless somebody has."""
    known = await usage.prices(organization_id)
    if not any((price.provider, price.unit) == (PROVIDER, UNIT) for price in known):
        await usage.set_price(
            organization_id=organization_id,
            provider=PROVIDER,
            item="*",
            unit=UNIT,
            unit_price=CREDIT,
            user_id=None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Booked:
    """What a run's jobs came to.

    Attributes:
        jobs: as they are stored.
        lines: the lines of usage that are a job's.
    """

    jobs: Sequence[ProviderJob]
    lines: Sequence[UsageLine]

    @property
    def settled(self) -> bool:
        """Whether every job that has ended is paid."""
        return all(job.usage_id is not None for job in self.jobs if job.state.terminal)


class Vendor:
    """The stand-in of one demo, which sees batches of this demo alone.

    Args:
        stand_in: what takes them.
        platform: where jobs are booked.
        organization_id: whose they are.
    """

    def __init__(self, stand_in: FullEnrichStandIn, platform: Platform, organization_id: UUID) -> None:
        self._stand_in = stand_in
        self._platform = platform
        self._organization_id = organization_id

    @property
    def unfinished(self) -> list[Batch]:
        """Batches that are not reported yet, oldest first."""
        return [batch for batch in self._stand_in.batches.values() if batch.status == "IN_PROGRESS"]

    def finish(self, batch: Batch) -> int:
        """End a batch with addresses for all but the last of several people; how many."""
        rows = batch.rows if len(batch.rows) == 1 else batch.rows[:-1]
        found = {row["custom"]["ref"]: address_of(row) for row in rows if row.get("domain")}
        self._stand_in.finish(batch, found=found)
        return len(found)

    async def deliver(self, batch: Batch) -> bool:
        """Post the signed report to the batch's address; whether it was taken."""
        return await self._stand_in.deliver(batch, tries=1)

    async def booked(self, run_id: UUID) -> Booked:
        """The jobs that a run submitted in this demo, and what was written for them."""
        ids = [UUID(batch.name.removeprefix(_NAMED)) for batch in self._stand_in.batches.values()]
        read = [await self._platform.jobs.read(self._organization_id, job_id) for job_id in ids]
        usage = await self._platform.usage.of_run(self._organization_id, run_id, limit=_LINES)
        return Booked(
            jobs=[job for job in read if job is not None and job.run_id == run_id],
            lines=[line for line in usage.lines if line.kind == "job"],
        )
