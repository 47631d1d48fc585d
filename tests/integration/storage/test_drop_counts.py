"""Drops of the same moment are one statement and each is counted; a count that failed is told to everybody who waited for it."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from agentic.contract.deliveries import DropReason
from agentic.storage.database import Database
from agentic.storage.drop_counts import DropCounts
from agentic.storage.pool import open_pool
from benchmarks.tally import CountedDatabase, Tally

REASONS = (DropReason.DUPLICATE, DropReason.BAD_SIGNATURE, DropReason.LATE)


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
async def db(database: str, tally: Tally) -> AsyncIterator[Database]:
    async with open_pool(database) as pool:
        yield CountedDatabase(pool, tally)


async def counted(db: Database) -> dict[tuple[str, str], int]:
    rows = await db.all("select provider, reason, drops from agent.webhook_drops", {})
    return {(row["provider"], row["reason"]): row["drops"] for row in rows}


async def test_each_of_many_at_once_is_counted_and_they_share_their_statements(db: Database, tally: Tally) -> None:
    drops = DropCounts(db)
    async with asyncio.timeout(30):
        await asyncio.gather(*(drops.add(f"p-{n % 2}", REASONS[n % 3]) for n in range(60)))
    assert tally.statements <= 2, "what comes while the first count is under way goes together in the next"
    assert await counted(db) == {(f"p-{n}", str(reason)): 10 for n in range(2) for reason in REASONS}


async def test_processes_that_count_the_same_at_once_wait_for_each_other_and_lose_nothing(db: Database) -> None:
    processes = [DropCounts(db) for _ in range(6)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(processes[n % 6].add(f"p-{n % 5}", REASONS[n % 3]) for n in range(120)))
    assert sum((await counted(db)).values()) == 120


async def test_whoever_waits_for_a_count_that_fails_is_told_and_the_next_is_counted(db: Database) -> None:
    drops = DropCounts(db)
    await db.count("alter table agent.webhook_drops add constraint full_disk check (provider <> 'p-9') not valid", {})
    async with asyncio.timeout(30):
        told = await asyncio.gather(*(drops.add("p-9", DropReason.LATE) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in told] == [psycopg.errors.CheckViolation] * 3
        await drops.add("p-1", DropReason.LATE)
    assert await counted(db) == {("p-1", "late"): 1}
