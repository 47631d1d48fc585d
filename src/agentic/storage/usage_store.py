"""Usage, prices and limits in Postgres. The statements stand in ``queries/usage.sql``."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from uuid import UUID

from agentic.contract.errors import NotPermitted
from agentic.services.tools.metering import Price
from agentic.services.usage.amounts import exact_sum
from agentic.services.usage.models import DayUsage, Held, RunUsage, UsageLine, UsageTotal
from agentic.storage.database import Database
from agentic.storage.encoding import text
from agentic.storage.queries import load_queries
from agentic.storage.run_rows import no_run


class PostgresUsageStore:
    """Implements ``UsageStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("usage")

    async def of_run(self, organization_id: UUID, run_id: UUID, *, limit: int) -> RunUsage:
        run = await self._db.one(self._sql["run"], {"organization_id": organization_id, "run_id": run_id})
        if run is None:
            raise no_run(run_id)
        key = {"organization_id": organization_id, "run_id": run_id, "root_run_id": run["root_run_id"], "limit": limit}
        lines = [UsageLine(**row) for row in await self._db.all(self._sql["run_lines"], key)]
        totals = [UsageTotal(**row) for row in await self._db.all(self._sql["run_totals"], key)]
        held = [Held(**row) for row in await self._db.all(self._sql["run_held"], key)]
        return RunUsage(
            run_id=run_id,
            root_run_id=run["root_run_id"],
            ceiling=run["ceiling"],
            spent=_spent(totals),
            held=exact_sum(one.amount for one in held),
            unpriced=sum(total.unpriced for total in totals),
            lines=lines,
            left_out=max(0, sum(total.lines for total in totals) - len(lines)),
            totals=totals,
            reservations=held,
        )

    async def of_day(self, organization_id: UUID, day: date | None = None) -> DayUsage:
        row = await self._db.one(self._sql["day"], {"organization_id": organization_id, "day": day})
        assert row is not None
        key = {"organization_id": organization_id, "day": row["day"]}
        totals = [UsageTotal(**total) for total in await self._db.all(self._sql["day_totals"], key)]
        spent, limit = _spent(totals), row["per_day"]
        return DayUsage(
            organization_id=organization_id,
            day=row["day"],
            limit=limit,
            spent=spent,
            held=row["held"],
            left=None
            if limit is None
            else max(Decimal(0), exact_sum([limit, spent.copy_negate(), row["held"].copy_negate()])),
            unpriced=sum(total.unpriced for total in totals),
            totals=totals,
        )

    async def prices(self, organization_id: UUID) -> list[Price]:
        rows = await self._db.all(self._sql["prices"], {"organization_id": organization_id})
        return [Price(**row) for row in rows]

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
        params = {
            "organization_id": organization_id,
            "provider": text(provider),
            "item": text(item),
            "unit": text(unit),
            "unit_price": unit_price,
            "user_id": user_id,
        }
        row = await self._db.one(self._sql["set_price"], params)
        if row is None:
            raise _not_permitted(user_id)
        return Price(**row)

    async def set_limit(self, organization_id: UUID, per_day: Decimal | None, *, user_id: UUID | None) -> None:
        params = {"organization_id": organization_id, "per_day": per_day, "user_id": user_id}
        row = await self._db.one(self._sql["set_limit"], params)
        if row is None or not row["permitted"]:
            raise _not_permitted(user_id)


def _spent(totals: Sequence[UsageTotal]) -> Decimal:
    return exact_sum(total.cost for total in totals)


def _not_permitted(user_id: UUID | None) -> NotPermitted:
    return NotPermitted(
        f"changing prices and limits takes the role admin in the organization, and {user_id} does not have it; ask an admin to do "
        f"it, or whoever administers the database to give the role with 'agentic members put {user_id} admin'"
    )
