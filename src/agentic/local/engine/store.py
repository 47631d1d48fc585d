"""The engine's hold on Postgres: its pool, its schema, its named queries, and one writer at a time.

Every transaction that changes something takes the same advisory lock first. A stand-in for one machine needs no more
throughput than that gives, and in return no two transitions of any run interleave, in one engine or between two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.types.json import Json
from psycopg_pool import PoolTimeout

from agentic.contract.clock import Clock
from agentic.local.engine.errors import EngineError
from agentic.storage.pool import Connection, Pool, open_pool
from agentic.storage.queries import load_queries

DATABASE_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
"""What is raised while Postgres is gone; it may come back."""

_HERE = Path(__file__).parent
_LOCK = 0x61676E74  # any constant will do, as long as every engine uses the same


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """One open transaction, and the moment that counts as now throughout it."""

    connection: Connection
    now: datetime

    async def all(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """The rows of a named query; `now` is always among its parameters."""
        cursor = await self.connection.execute(_queries()[query], {"now": self.now, **values})
        return await cursor.fetchall()

    async def one(self, query: str, **values: Any) -> dict[str, Any] | None:
        """The first row of a named query, or None."""
        rows = await self.all(query, **values)
        return rows[0] if rows else None

    async def run(self, query: str, **values: Any) -> int:
        """Execute a named statement; how many rows it touched."""
        cursor = await self.connection.execute(_queries()[query], {"now": self.now, **values})
        return cursor.rowcount


class Store:
    """Opens and closes the pool, applies the schema, begins transactions.

    Args:
        dsn: the database as a URL.
        clock: stamps each transaction with its moment.
    """

    def __init__(self, *, dsn: str, clock: Clock) -> None:
        self._dsn = dsn
        self._clock = clock
        self._closing = AsyncExitStack()
        self._pool: Pool

    async def open(self) -> None:
        """Connect and create the engine's schema where it is missing.

        Raises:
            DatabaseUnreachable: nobody answers there, or the login is refused.
            DatabaseUrlInvalid: the URL cannot be read.
            EngineError: this user may not create the schema.
        """
        self._pool = await self._closing.enter_async_context(open_pool(self._dsn, max_size=4))
        try:
            async with self.transaction() as transaction:
                await transaction.connection.execute((_HERE / "schema.sql").read_bytes())
        except psycopg.Error as error:
            await self.close()
            raise EngineError(
                f"The function engine cannot create its tables ({error}): "
                "give the user of DATABASE_URL the right to create the schema agentic_engine."
            ) from error

    async def close(self) -> None:
        """Close the pool; a closed store is not opened again."""
        await self._closing.aclose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One transaction, alone among all engines on this database; it commits when the block ends without error."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield Transaction(connection=connection, now=self._clock.now())

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Transaction]:
        """A consistent look at the state that keeps nobody waiting; nothing may be changed in it."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("set transaction isolation level repeatable read, read only")
            yield Transaction(connection=connection, now=self._clock.now())


def as_json(value: Any) -> Json:
    """A parameter for a `json` column; None becomes JSON null, not SQL null."""
    return Json(value)


def _queries() -> Mapping[str, LiteralString]:
    return load_queries("queries", folder=_HERE)
