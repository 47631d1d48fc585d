"""What tests of money look at: prices that stand, what a run spent and holds, and that both agree."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from agentic.contract.principal import RunCeilings
from agentic.testing import Harness, Usage
from core_world import execute, rows

FREE = Usage(cost=Decimal(0))
"""What a request of the scripted model costs, so that only calls do; a run with a ceiling whose model names no cost is ended."""


def ceiling(amount: str) -> RunCeilings:
    """A run that may cost this much."""
    return RunCeilings(max_cost=Decimal(amount))


async def set_price(
    h: Harness, unit_price: str, *, provider: str = "crm", unit: str = "credit", item: str = "*", of: UUID | None = None
) -> None:
    """A price from now on, of one organization or of all."""
    await execute(
        h,
        "insert into agent.prices (organization_id, provider, item, unit, unit_price)"
        " values (%(organization_id)s, %(provider)s, %(item)s, %(unit)s, %(unit_price)s)",
        organization_id=of,
        provider=provider,
        item=item,
        unit=unit,
        unit_price=Decimal(unit_price),
    )


async def lines(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    """The usage lines of tools in a tree, in the order of their ids."""
    return await rows(
        h,
        "select * from agent.ai_usage_log where root_run_id = %(run_id)s and kind = 'tool' order by id",
        run_id=run_id,
    )


async def holds(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    """What was held for a tree, in the order it was."""
    return await rows(
        h,
        "select * from agent.usage_reservations where root_run_id = %(run_id)s order by created_at, id",
        run_id=run_id,
    )


async def states(h: Harness, run_id: UUID) -> list[str]:
    """How what was held stands."""
    return [hold["state"] for hold in await holds(h, run_id)]


async def spent(h: Harness, run_id: UUID) -> Decimal:
    """What the lines of tools come to."""
    return sum((line["cost"] for line in await lines(h, run_id) if line["cost"] is not None), Decimal(0))


async def leases_end(h: Harness, run_id: UUID) -> None:
    """The time that a read's hold may stand is over; moved rather than waited for."""
    await execute(
        h,
        "update agent.usage_reservations set lease_expires_at = clock_timestamp()"
        " where root_run_id = %(run_id)s and owner = 'read' and state = 'held'",
        run_id=run_id,
    )
