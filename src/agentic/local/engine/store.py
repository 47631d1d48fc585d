"""The engine's hold on Postgres: its pool, its schema, its named queries, and one writer at a time.

Every transaction takes the same advisory lock first. A stand-in for one machine needs no more throughput than that gives,
and in return no two transitions of any run ever interleave, whether they come from one engine or from two.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Json
from psycopg_pool import AsyncConnectionPool

from agentic.local.engine.errors import EngineError

_LOCK = 0x61676E74  # any constant will do, as long as every engine uses the same
Clock = Callable[[], datetime]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """One open transaction, and the moment that counts as now throughout it."""

    connection: AsyncConnection[DictRow]
    now: datetime

    async def all(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """The rows of a named query; `now` is always among its parameters."""
        cursor = await self.connection.execute(named_queries()[query], {"now": self.now, **values})
        return await cursor.fetchall()

    async def one(self, query: str, **values: Any) -> dict[str, Any] | None:
        """The first row of a named query, or None."""
        rows = await self.all(query, **values)
        return rows[0] if rows else None

    async def run(self, query: str, **values: Any) -> int:
        """Execute a named statement; how many rows it touched."""
        cursor = await self.connection.execute(named_queries()[query], {"now": self.now, **values})
        return cursor.rowcount


class Store:
    """Opens and closes the pool, applies the schema, begins transactions."""

    def __init__(self, *, dsn: str, clock: Clock) -> None:
        self._clock = clock
        self._pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=4,
            open=False,
            timeout=10.0,
            # No server-side prepared statements: they do not survive a pooler in transaction mode.
            kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
            check=AsyncConnectionPool.check_connection,
        )

    async def open(self) -> None:
        """Connect and create the engine's schema where it is missing.

        Raises:
            EngineError: Postgres does not answer, or does not let this user create the schema.
        """
        try:
            await self._pool.open(wait=True, timeout=10.0)
            async with self.transaction() as transaction:
                await transaction.connection.execute(_text("schema.sql").encode())
        except Exception as error:
            await self._pool.close()
            raise EngineError(
                f"The function engine cannot use its database ({error}): check DATABASE_URL, that Postgres is running, "
                "and that the user may create the schema agentic_engine."
            ) from error

    async def close(self) -> None:
        """Close the pool; a closed store is not opened again."""
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One transaction, alone among all engines on this database; it commits when the block ends without error."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield Transaction(connection=connection, now=self._clock())


def as_json(value: Any) -> Json:
    """A parameter for a `json` column; None becomes JSON null, not SQL null."""
    return Json(value)


@functools.cache
def named_queries() -> dict[str, bytes]:
    """The statements of `queries.sql` by name."""
    found: dict[str, bytes] = {}
    for part in _text("queries.sql").split("\n-- name: ")[1:]:
        name, _, text = part.partition("\n")
        found[name.strip()] = text.encode()
    return found


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
