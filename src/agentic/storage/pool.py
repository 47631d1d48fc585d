"""The pool of database connections that a process works with.

Connections are in autocommit mode: a statement is a transaction, and a unit of work is one statement where it can be.
No session state, so that a transaction pooler may sit in between.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agentic.storage.connection import CONNECT_TIMEOUT_S, DatabaseUnreachable, connect, describe

Connection = psycopg.AsyncConnection[DictRow]
"""A connection of the pool: rows are dictionaries."""

Pool = AsyncConnectionPool[Connection]
"""What the stores are given."""


@asynccontextmanager
async def open_pool(
    dsn: str, *, min_size: int = 1, max_size: int = 8, prepare_threshold: int | None = None
) -> AsyncIterator[Pool]:
    """A pool that is connected when the block begins and closed when it ends.

    Args:
        dsn: The database as a URL or in the keyword form of libpq.
        min_size: Connections that are kept open.
        max_size: Connections at most; more than a few per core only add latency.
        prepare_threshold: After how many runs a statement is prepared on the server. None, for never, is safe behind a
            transaction pooler; a number is for direct connections only.

    Raises:
        DatabaseUnreachable: Nobody answers there, or the login is refused. Told at once, not after the pool's retries.
        DatabaseUrlInvalid: `dsn` cannot be read.
    """
    await (await connect(dsn)).close()
    async with AsyncConnectionPool(
        dsn,
        connection_class=Connection,
        kwargs={
            "autocommit": True,
            "prepare_threshold": prepare_threshold,
            "row_factory": dict_row,
            "connect_timeout": CONNECT_TIMEOUT_S,
        },
        min_size=min_size,
        max_size=max_size,
        open=False,
    ) as pool:
        try:
            await pool.wait(timeout=CONNECT_TIMEOUT_S)
        except PoolTimeout:
            raise DatabaseUnreachable(
                f"the database {describe(dsn)} did not give {min_size} connections within {CONNECT_TIMEOUT_S} s. "
                "Raise its max_connections, or start fewer processes."
            ) from None
        yield pool
