"""The store of usage, prices and limits."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from agentic.services.tools.metering import Price
from agentic.services.usage.models import DayUsage, RunUsage


class UsageReader(Protocol):
    """Tells what was used. Every figure comes from the lines themselves, never from a rollup."""

    async def of_run(self, organization_id: UUID, run_id: UUID, *, limit: int) -> RunUsage:
        """What a run and its children used.

        Args:
            limit: how many lines at most; totals count all of them.

        Raises:
            NotFound: no such run in this organization.
        """
        ...

    async def of_day(self, organization_id: UUID, day: date | None = None) -> DayUsage:
        """What an organization used in a day (UTC); ``None`` is the database's today."""
        ...


class UsageStore(UsageReader, Protocol):
    """Also keeps prices and limits."""

    async def prices(self, organization_id: UUID) -> Sequence[Price]:
        """The prices that count now for an organization, those of everybody included."""
        ...

    async def set_price(
        self,
        *,
        organization_id: UUID | None,
        provider: str,
        item: str,
        unit: str,
        unit_price: Decimal,
        user_id: UUID | None,
    ) -> Price:
        """Add a price that counts from now on. Lines that are written keep the cost they have.

        Args:
            organization_id: whose; ``None`` for every organization of the database.
            user_id: the person, kept with the price; ``None`` for whoever administers the database.

        Raises:
            NotPermitted: the person is no admin of the organization.
        """
        ...

    async def set_limit(self, organization_id: UUID, per_day: Decimal | None, *, user_id: UUID | None) -> None:
        """Bound what an organization may spend in a day (UTC), from the next segment of any run on; ``None`` lifts the bound.

        Raises:
            NotPermitted: the person is no admin of the organization.
        """
        ...
