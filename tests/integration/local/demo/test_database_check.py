"""Which databases the demo makes itself at home in."""

import psycopg
import pytest

from agentic.local.demo.database_check import DatabaseInUse, require_room
from agentic.storage.connection import describe


async def _make(dsn: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(statement.encode())


async def test_a_database_with_tables_of_others_is_refused_and_named_and_left_as_it_was(empty_database: str) -> None:
    await _make(empty_database, "create table public.invoices (id int)")
    with pytest.raises(DatabaseInUse, match="agentic db migrate") as refused:
        await require_room(empty_database)
    assert describe(empty_database) in str(refused.value)
    assert "invoices" in str(refused.value)
    async with await psycopg.AsyncConnection.connect(empty_database) as connection:
        row = await (await connection.execute("select count(*) from pg_namespace where nspname = 'agent'")).fetchone()
    assert row == (0,)


async def test_an_empty_database_is_good(empty_database: str) -> None:
    await require_room(empty_database)


async def test_a_migrated_database_is_good_whatever_else_is_in_it(database: str) -> None:
    await _make(database, "create table public.invoices (id int)")
    await require_room(database)
