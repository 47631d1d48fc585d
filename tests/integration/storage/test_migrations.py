"""A database is brought to the schema of this build, recorded as the Supabase CLI records it, or left as it was."""

import asyncio
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from agentic.storage.connection import DatabaseUnreachable
from agentic.storage.migration_errors import (
    DatabaseNewer,
    DatabaseNotOurs,
    MigrationChanged,
    MigrationFailed,
    MigrationOutOfOrder,
)
from agentic.storage.migrations import Applied, MigrationState, migrate, status

FIRST = "-- why\ncreate schema agent;\ncreate table agent.t (id int);\n"
SECOND = "insert into agent.t values (1); -- one\ninsert into agent.t values (2);\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "20300101000000_first_things.sql").write_text(FIRST, encoding="utf-8")
    (tmp_path / "20300102000000_second.sql").write_text(SECOND, encoding="utf-8")
    return tmp_path


async def rows(dsn: str, query: str) -> list[TupleRow]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        return await (await connection.execute(query)).fetchall()


async def test_missing_files_are_applied_in_order_and_only_once(empty_database: str, folder: Path) -> None:
    assert await migrate(empty_database, folder=folder) == [
        Applied(version="20300101000000", name="first_things"),
        Applied(version="20300102000000", name="second"),
    ]
    assert await migrate(empty_database, folder=folder) == []
    assert await rows(empty_database, "select id from agent.t order by id") == [(1,), (2,)]


async def test_they_are_recorded_as_the_supabase_cli_records_them(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder=folder)
    recorded = await rows(
        empty_database,
        "select version, name, statements from supabase_migrations.schema_migrations order by version",
    )
    assert recorded == [
        ("20300101000000", "first_things", ["-- why\ncreate schema agent", "create table agent.t (id int)"]),
        (
            "20300102000000",
            "second",
            ["insert into agent.t values (1)", "-- one\ninsert into agent.t values (2)"],
        ),
    ]
    columns = await rows(
        empty_database,
        "select column_name, data_type, is_nullable from information_schema.columns "
        "where table_schema = 'supabase_migrations' and table_name = 'schema_migrations' order by ordinal_position",
    )
    assert columns == [("version", "text", "NO"), ("statements", "ARRAY", "YES"), ("name", "text", "YES")]


async def test_it_goes_on_where_the_supabase_cli_stopped(empty_database: str, folder: Path) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database, autocommit=True) as connection:
        # as the hosted platform has it: more columns than ours, comments kept or not
        await connection.execute(
            "create schema supabase_migrations; create table supabase_migrations.schema_migrations "
            "(version text primary key, statements text[], name text, created_by text); "
            "create schema agent; create table agent.t (id int)"
        )
        await connection.execute(
            "insert into supabase_migrations.schema_migrations values (%s, %s, 'first_things', 'ada@shop.example')",
            ("20300101000000", ["create  schema agent", "create table agent.t (id int);"]),
        )
    assert [done.name for done in await migrate(empty_database, folder=folder)] == ["second"]


async def test_migrators_at_the_same_time_share_the_work(empty_database: str, folder: Path) -> None:
    done = await asyncio.wait_for(
        asyncio.gather(*(migrate(empty_database, folder=folder) for _ in range(6))), timeout=30
    )
    assert sorted(applied.name for part in done for applied in part) == ["first_things", "second"]
    assert await rows(empty_database, "select count(*) from agent.t") == [(2,)]


async def test_a_failing_statement_takes_its_whole_file_back(empty_database: str, folder: Path) -> None:
    (folder / "20300102000000_second.sql").write_text(
        f"{SECOND}\nselect no_such_column from agent.t;", encoding="utf-8"
    )
    with pytest.raises(MigrationFailed) as failed:
        await migrate(empty_database, folder=folder)
    assert (failed.value.file, failed.value.statement) == ("20300102000000_second.sql", 3)
    assert failed.value.sqlstate == "42703"
    assert 'column "no_such_column" does not exist' in str(failed.value)
    assert "rolled back" in str(failed.value)
    assert await rows(empty_database, "select count(*) from agent.t") == [(0,)]

    (folder / "20300102000000_second.sql").write_text(SECOND, encoding="utf-8")
    assert [done.name for done in await migrate(empty_database, folder=folder)] == ["second"]


async def test_a_file_edited_after_it_was_applied_is_refused(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder=folder)
    edited = folder / "20300101000000_first_things.sql"
    edited.write_text(FIRST.replace("id int", "id bigint"), encoding="utf-8")
    with pytest.raises(MigrationChanged, match=r"first_things\.sql is not what was applied .* new migration"):
        await migrate(empty_database, folder=folder)

    edited.write_text(f"{FIRST.replace('-- why', '-- a better reason')}\n\n", encoding="utf-8")
    assert await migrate(empty_database, folder=folder) == []


async def test_a_database_with_a_schema_of_that_name_and_no_record_is_left_alone(
    empty_database: str, folder: Path
) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database, autocommit=True) as connection:
        await connection.execute("create schema agent")
    with pytest.raises(DatabaseNotOurs, match="DATABASE_URL"):
        await migrate(empty_database, folder=folder)
    assert await rows(empty_database, "select to_regnamespace('supabase_migrations')") == [(None,)]


async def test_a_database_migrated_by_a_newer_build_is_left_alone(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder=folder)
    (folder / "20300102000000_second.sql").unlink()
    with pytest.raises(DatabaseNewer, match=r"20300102000000.*newer build"):
        await migrate(empty_database, folder=folder)


async def test_a_file_older_than_what_was_applied_is_refused(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder=folder)
    (folder / "20300101120000_late.sql").write_text("create table agent.late ()", encoding="utf-8")
    with pytest.raises(MigrationOutOfOrder, match=r"late\.sql was never applied .*newer version"):
        await migrate(empty_database, folder=folder)
    assert await rows(empty_database, "select to_regclass('agent.late')") == [(None,)]


async def test_the_status_tells_how_each_file_stands_and_changes_nothing(empty_database: str, folder: Path) -> None:
    assert {found.state for found in await status(empty_database, folder=folder)} == {MigrationState.PENDING}
    assert await rows(empty_database, "select to_regnamespace('supabase_migrations')") == [(None,)]

    await migrate(empty_database, folder=folder)
    (folder / "20300101000000_first_things.sql").rename(folder / "20300103000000_third.sql")
    (folder / "20300102000000_second.sql").write_text("select 1", encoding="utf-8")
    assert [(found.name, found.state) for found in await status(empty_database, folder=folder)] == [
        (None, MigrationState.UNKNOWN),
        ("second", MigrationState.CHANGED),
        ("third", MigrationState.PENDING),
    ]


async def test_the_migrations_of_this_build_apply_and_stay_applied(database: str) -> None:
    assert await migrate(database) == []
    assert {found.state for found in await status(database)} == {MigrationState.APPLIED}


async def test_an_unreachable_database_is_said_at_once() -> None:
    with pytest.raises(DatabaseUnreachable):
        await migrate("postgresql://ada:s3cret@127.0.0.1:1/shop")
