"""The pool of database connections that a process works with.

Connections are in autocommit mode: a statement is a transaction, and a unit of work is one statement where it can be.
No session state, so that a transaction pooler may sit in between.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from agentic.storage.connection import CONNECT_TIMEOUT_S, DatabaseUnreachable, connect, describe

Connection = psycopg.AsyncConnection[DictRow]
"""A connection of the pool: rows are dictionaries."""

Pool = AsyncConnectionPool[Connection]
"""What the stores are given."""

RECONNECT_S = 8.0
"""A lost connection is tried for again after 1, 2, 4 seconds and from the beginning. Left alone, the pool doubles its waits up to minutes,
so that a process would stay away long after its database is back."""


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    min_size: int = 1,
    max_size: int = 8,
    prepare_threshold: int | None = None,
    reconnect_s: float = RECONNECT_S,
) -> AsyncIterator[Pool]:
    """A pool that is connected when the block begins and closed when it ends.

    Args:
        dsn: The database as a URL or in the keyword form of libpq.
        min_size: Connections that are kept open.
        max_size: Connections at most; more than a few per core only add latency.
        prepare_threshold: After how many runs a statement is prepared on the server. None, for never, is safe behind a
            transaction pooler; a number is for direct connections only.
        reconnect_s: After how many seconds of doubling waits the attempts at a lost connection begin anew.

    Raises:
        DatabaseUnreachable: Nobody answers there, or the login is refused. Told at once, not after the pool's retries.
        DatabaseUrlInvalid: `dsn` cannot be read.
    """
    await (await connect(dsn)).close()
    asking: set[asyncio.Task[None]] = set()

    async def again(pool: Pool) -> None:
        task = asyncio.create_task(_ask(pool), name="ask the pool to connect")
        asking.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(asking.discard)

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
        reconnect_timeout=reconnect_s,
        reconnect_failed=again,
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


async def _ask(pool: Pool) -> None:
    """A pool that gave up connects for nobody who waits already, only for the next to come."""
    with suppress(PoolTimeout, PoolClosed):
        async with pool.connection():
            pass
