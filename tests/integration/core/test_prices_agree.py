"""Prices are read in two places, beside a call and in the append of a segment; both say the same (M3)."""

from decimal import Decimal
from random import Random
from uuid import UUID, uuid4

import pytest

from agentic.services.tools.context import ReportedUsage
from agentic.services.usage.pricing import priced
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb
from agentic.storage.meter_ledger import PostgresMeterLedger
from agentic.storage.pool import open_pool

TOOL = "exa.search"
INSERT = (
    "insert into agent.prices (organization_id, provider, item, unit, unit_price, valid_from) values"
    " (%(of)s, %(provider)s, %(item)s, %(unit)s, %(price)s, clock_timestamp() + make_interval(days => %(days)s))"
    " on conflict do nothing"
)


@pytest.mark.guarantee("M3")
async def test_the_price_that_counts_beside_a_call_is_the_one_that_counts_in_an_append(database: str) -> None:
    choice, ours, theirs = Random(7), uuid4(), uuid4()
    async with open_pool(database, max_size=2) as pool:
        db = Database(pool)
        ledger, found = PostgresMeterLedger(db), []
        for number in range(60):
            provider = f"vendor {number}"
            for _ in range(choice.randint(0, 6)):
                price = {
                    "of": choice.choice([ours, ours, None, None, theirs]),
                    "provider": provider,
                    "item": choice.choice([TOOL, "*", "*", "exa.other"]),
                    "unit": choice.choice(["credit", "credit", "page"]),
                    "price": Decimal(choice.randint(0, 10**12)) / 10 ** choice.randint(0, 14),
                    "days": choice.choice([-9, -2, -1, 1]),
                }
                await db.count(INSERT, price)
            used = ReportedUsage(quantity=Decimal(choice.randint(0, 10**6)) / 1000, unit="credit", provider=provider)
            hold = await ledger.hold_of(tool=TOOL, bound=Decimal(1), organization_id=ours)
            here = priced(used, hold.prices, item=TOOL, provider="exa", at=hold.at)
            line = jsonb(
                {"kind": "tool", "provider": provider, "item": TOOL, "unit": "credit", "quantity": used.quantity}
            )
            there = await db.one(
                "select cost, price_row from agent.cost_of(%(of)s, %(line)s::jsonb)", {"of": ours, "line": line}
            )
            assert there is not None
            row = None if there["price_row"] is None else UUID(there["price_row"])
            assert (here and here.cost, here and here.price_row) == (there["cost"], row)
            found.append(here is not None)
    assert {True, False} == set(found)
