"""A table of nobody takes no organization, is no user's, and is reached by its own store alone."""

from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from agentic.contract.errors import ProgramFault
from agentic.services.tools.scoped_db import ScopedDatabaseOver
from agentic.services.tools.scoped_queries import Contains, Eq, Order
from agentic.storage.database import Database
from agentic.storage.global_store import GlobalStore
from agentic.storage.pool import open_pool
from agentic.storage.scoped_psycopg import PostgresRows
from scoped_stage import Stage

CODES = frozenset({"code", "name"})
pytestmark = pytest.mark.guarantee("T1")


async def test_its_rows_are_everybodys_and_a_repeated_write_changes_nothing(stage: Stage) -> None:
    async with open_pool(stage.database, max_size=2) as pool:
        store = await GlobalStore.opened(Database(pool), table="shop_currencies", columns=CODES)
        rows = [{"code": "EUR", "name": "Euro"}, {"code": "NOK", "name": "Krone"}]
        for _ in range(2):
            assert await store.upsert(rows, on=["code"], returning=["code", "name"]) == rows
        assert (
            await store.upsert([{"code": "EUR", "name": "x"}], on=["code"], returning=["code"], existing="keep") == []
        )
        assert await store.select(["name"], order=[Order("code", descending=True)], limit=1) == [{"name": "Krone"}]
        assert await store.select(["code"], where=[Contains("name", "EUR"), Eq("code", "EUR")], limit=9) == [
            {"code": "EUR"}
        ]


async def test_a_row_or_a_condition_that_names_an_organization_is_refused(stage: Stage) -> None:
    async with open_pool(stage.database, max_size=2) as pool:
        store = await GlobalStore.opened(Database(pool), table="shop_currencies", columns=CODES)
        with pytest.raises(ProgramFault, match="organization_id is neither read, set nor compared with"):
            await store.upsert([{"code": "SEK", "name": "x", "organization_id": "o"}], on=["code"], returning=["code"])
        with pytest.raises(ProgramFault, match="organization_id is neither read, set nor compared with"):
            await store.select(["code"], where=[Eq("organization_id", "o")], limit=1)
        with pytest.raises(ProgramFault, match="1 to 1000 rows"):
            await store.select(["code"], limit=0)
        assert await store.select(["code"], where=[Eq("code", "SEK")], limit=1) == []


async def test_a_table_of_organizations_is_no_table_of_nobody_and_the_other_way_round(stage: Stage) -> None:
    async with open_pool(stage.database, max_size=2) as pool:
        database = Database(pool)
        with pytest.raises(ProgramFault, match="crm_people holds rows of organizations; reach it through scoped_db"):
            await GlobalStore.opened(database, table="crm_people", columns=frozenset({"name"}))
        with pytest.raises(ProgramFault, match="there is no such table with the columns code, continent"):
            await GlobalStore.opened(database, table="shop_currencies", columns=frozenset({"code", "continent"}))
        with pytest.raises(ProgramFault, match="there is no such table"):
            await GlobalStore.opened(database, table="runs", columns=frozenset({"id"}))
        scoped = ScopedDatabaseOver(PostgresRows(database), tables={"shop_currencies": CODES})
        with pytest.raises(ProgramFault, match=r"organization_id does not exist"):
            await scoped.of(UUID(int=1)).select("shop_currencies", ["code"], limit=1)


@pytest.mark.parametrize(
    "opening",
    [
        "alter table public.{} disable row level security",
        "grant select (name) on public.{} to authenticated",
        "grant delete on public.{} to anon",
    ],
)
async def test_a_table_that_a_users_key_reaches_is_refused(direct_database: str, opening: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, autocommit=True) as connection:
        await connection.execute(
            "create table public.planets (name text primary key); alter table public.planets enable row level security; "
            "revoke all on public.planets from anon, authenticated"
        )
        async with open_pool(direct_database, max_size=1) as pool:
            await GlobalStore.opened(Database(pool), table="planets", columns=frozenset({"name"}))
            await connection.execute(sql.SQL(opening).format(sql.Identifier("planets")))
            with pytest.raises(ProgramFault, match=r"planets: a table of nobody has row level security and no right"):
                await GlobalStore.opened(Database(pool), table="planets", columns=frozenset({"name"}))
