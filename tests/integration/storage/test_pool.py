"""The pool hands out connections that a transaction pooler may sit behind, and fails plainly."""

import asyncio

import psycopg
import pytest

from agentic.storage.connection import DatabaseUnreachable
from agentic.storage.pool import open_pool


async def test_a_statement_is_a_transaction_and_rows_are_dictionaries(database: str) -> None:
    async with open_pool(database) as pool:
        async with pool.connection() as connection:
            await connection.execute("create table public.kept (id int)")
            assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        async with pool.connection() as connection:
            cursor = await connection.execute("select count(*) as found from public.kept")
            assert await cursor.fetchone() == {"found": 0}


async def test_nothing_is_prepared_on_the_server_however_often_it_runs(database: str) -> None:
    async with open_pool(database, max_size=1) as pool, pool.connection() as connection:
        for _ in range(20):
            await connection.execute("select %s::int", (1,))
        cursor = await connection.execute("select count(*) as found from pg_prepared_statements")
        assert await cursor.fetchone() == {"found": 0}


async def test_no_more_connections_than_allowed(direct_database: str) -> None:
    async with open_pool(direct_database, min_size=0, max_size=2) as pool:

        async def backend() -> int:
            async with pool.connection() as connection:
                row = await (await connection.execute("select pg_backend_pid() as pid, pg_sleep(0.01)")).fetchone()
                assert row is not None
                return int(row["pid"])

        backends = await asyncio.wait_for(asyncio.gather(*(backend() for _ in range(12))), timeout=30)
    assert len(set(backends)) <= 2


async def test_a_refused_login_is_told_without_the_password(empty_database: str) -> None:
    wrong = psycopg.conninfo.make_conninfo(empty_database, password="s3cret-guess")
    with pytest.raises(DatabaseUnreachable, match="password authentication failed") as refused:
        async with open_pool(wrong):
            pytest.fail("the pool opened")
    assert "s3cret-guess" not in str(refused.value)
