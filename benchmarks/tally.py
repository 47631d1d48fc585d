"""Counts what the stores send, and has the server confirm it.

The client's count names statements; the server's says how many transactions they were, how many of those wrote, and how much WAL
that took. The two counts are taken at different ends and must agree.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg.rows import DictRow

from agentic.contract.errors import ProgramFault
from agentic.storage.database import Database, Params
from agentic.storage.pool import Pool

_READ: LiteralString = """
select
    (select xact_commit + xact_rollback from pg_stat_database where datname = %(name)s) as transactions,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as commits,
    (pg_current_wal_insert_lsn() - '0/0')::bigint as wal_bytes
"""
# a backend that has touched no table has nothing to report, and keeps its transactions to itself
_REPORT: LiteralString = "select pg_stat_force_next_flush() from pg_namespace limit 1"


@dataclass(kw_only=True, slots=True)
class Tally:
    """What one process has sent so far."""

    statements: int = 0
    transactions: int = 0


class CountedDatabase(Database):
    """A ``Database`` that keeps a tally."""

    def __init__(self, pool: Pool, tally: Tally) -> None:
        super().__init__(pool)
        self._tally = tally

    async def all(self, statement: LiteralString, params: Params) -> list[DictRow]:
        """As there; ``one`` comes through here too."""
        self._tally.statements += 1
        self._tally.transactions += 1
        return await super().all(statement, params)

    async def count(self, statement: LiteralString, params: Params) -> int:
        """As there."""
        self._tally.statements += 1
        self._tally.transactions += 1
        return await super().count(statement, params)

    async def atomic(self, statements: Sequence[tuple[LiteralString, Params]]) -> list[DictRow | None]:
        """As there."""
        self._tally.statements += len(statements)
        self._tally.transactions += 1
        return await super().atomic(statements)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What happened between two moments, or up to one.

    Attributes:
        statements: as the client sent them.
        transactions: as the server ended them; a read is one too.
        commits: transactions that wrote: those that were given an id, which is what a disk has to confirm.
        wal_bytes: what they put into the log.
    """

    statements: int
    transactions: int
    commits: int
    wal_bytes: int


class Counter:
    """Reads both counts at moments when nothing is under way.

    Args:
        pool: the pool the counted stores use.
        tally: their count.
        watcher: a connection to another database of the same server, so that reading counts for nothing.
        name: the measured database.
    """

    def __init__(self, *, pool: Pool, tally: Tally, watcher: psycopg.AsyncConnection[DictRow], name: str) -> None:
        self._pool = pool
        self._tally = tally
        self._watcher = watcher
        self._name = name
        self._own = 0
        """Transactions of the reading itself."""

    async def read(self) -> Counts:
        """What has been counted up to now."""
        await self._report()
        row = await (await self._watcher.execute(_READ, {"name": self._name})).fetchone()
        if row is None:
            raise ProgramFault("the server's counters gave no row")
        return Counts(
            statements=self._tally.statements,
            transactions=row["transactions"] - self._own,
            commits=row["commits"],
            wal_bytes=row["wal_bytes"],
        )

    async def since(self, before: Counts, *, sent: int) -> Counts:
        """What has been counted since.

        Args:
            sent: transactions that the client had sent at that moment, by its own tally.

        Raises:
            ProgramFault: the server saw other transactions than the client sent; the figures would say nothing.
        """
        now = await self.read()
        counted = Counts(
            statements=now.statements - before.statements,
            transactions=now.transactions - before.transactions,
            commits=now.commits - before.commits,
            wal_bytes=now.wal_bytes - before.wal_bytes,
        )
        if counted.transactions != self._tally.transactions - sent:
            raise ProgramFault(
                f"the server ended {counted.transactions} transactions where {self._tally.transactions - sent} were sent: "
                "somebody else uses the measured database, or a store goes past its Database"
            )
        return counted

    async def _report(self) -> None:
        """Make every connection hand in its numbers now: a server's counters lag by up to a second otherwise."""
        async with AsyncExitStack() as stack:
            held = [await stack.enter_async_context(self._pool.connection()) for _ in range(self._pool.max_size)]
            await asyncio.gather(*(connection.execute(_REPORT) for connection in held))
            self._own += len(held)
