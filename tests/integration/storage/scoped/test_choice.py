"""Which way a process goes to tables of organizations, and that tools made of it reach them."""

from collections.abc import Mapping, Sequence
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agentic.bootstrap import App, open_platform
from agentic.contract.errors import ProgramFault, StorageUnavailable
from agentic.contract.trust import Trust
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.scoped_db import ScopedDatabase
from agentic.services.tools.scoped_queries import Row
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from agentic.storage.scoped_db import joined_tables, scoped_db
from agentic.storage.scoped_supabase import SupabaseRows
from agentic.testing import Call, Calls, RecordingBus, Say, harness
from scoped_stage import PRODUCT_TABLES, Stage

UNREACHABLE = "postgresql://ada:s3cret@127.0.0.1:1/shop"


async def test_without_a_project_it_is_the_database(database: str) -> None:
    async with scoped_db(database, environment={}) as db:
        rows = await db.of(uuid4()).insert("crm_lists", [{"name": "a", "name_key": "a"}], returning=["name"])
    assert rows == [{"name": "a"}]


async def test_with_a_project_the_database_url_is_not_even_tried(stage: Stage) -> None:
    del stage
    environment = {"SUPABASE_URL": "http://127.0.0.1:1", "SUPABASE_SERVICE_ROLE_KEY": "k3y"}
    async with scoped_db(UNREACHABLE, environment=environment) as db:
        with pytest.raises(StorageUnavailable, match=r"Supabase gave no answer \(ConnectError\)"):
            await db.of(uuid4()).select("crm_lists", ["id"], limit=1)
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        async with scoped_db(UNREACHABLE, environment={}):
            pytest.fail("it opened")


@pytest.mark.parametrize(
    "environment", [{"SUPABASE_URL": "https://a.supabase.example"}, {"SUPABASE_SERVICE_ROLE_KEY": "k3y"}]
)
async def test_half_of_what_names_a_project_is_refused(environment: Mapping[str, str]) -> None:
    with pytest.raises(ProgramFault, match="set both, or neither") as refused:
        async with scoped_db(UNREACHABLE, environment=environment):
            pytest.fail("it opened")
    assert "k3y" not in str(refused.value)


async def test_the_client_is_closed_with_the_block() -> None:
    async with SupabaseRows(url="http://127.0.0.1:1", key="k3y") as rows:
        client = rows._http
    assert client.is_closed


class Nothing(BaseModel):
    """No arguments."""


class Found(BaseModel):
    """Orders."""

    orders: list[Row]


def shop_tools(db: ScopedDatabase) -> Sequence[Tool]:
    @internal_tool("shop.list_orders", "The orders there are.", output_trust=Trust.INTERNAL)
    async def list_orders(ctx: CallContext, args: Nothing) -> Found:
        del args
        return Found(orders=await db.of(ctx.organization_id).select("shop_orders", ["note"], limit=10))

    return [list_orders]


def test_tools_over_tables_are_listed_without_a_database() -> None:
    app = App(scoped_tools=[shop_tools], scoped_tables=PRODUCT_TABLES)
    (tool,) = app.declared_tools()
    assert tool.spec.name == "shop.list_orders"


async def test_an_app_makes_its_tools_of_the_package_s_tables_and_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    given: list[ScopedDatabase] = []

    def tools(db: ScopedDatabase) -> Sequence[Tool]:
        given.append(db)
        return shop_tools(db)

    app = App(scoped_tools=[tools], scoped_tables=PRODUCT_TABLES)
    async with open_platform(app, stage.database, bus=RecordingBus()) as platform:
        assert [tool.spec.name for tool in platform.registry] == ["shop.list_orders"]
        own = given[0].of(uuid4())
        await own.insert("shop_orders", [{"note": "mine"}], returning=["id"])
        assert await own.select("shop_orders", ["note"], limit=10) == [{"note": "mine"}]
        assert await own.select("crm_people", ["id"], limit=10) == []


async def test_a_run_reads_the_rows_of_its_own_organization_and_a_harness_keeps_to_its_database(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPABASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SUPABASE_SERVICE_ROLE_KEY", "k3y")
    async with (
        stage.tables("psycopg") as tables,
        harness(
            tools=[],
            script=[Calls([Call("shop.list_orders", {})]), Say("Done.")],
            database_url=stage.database,
            scoped_tools=[shop_tools],
            scoped_tables=PRODUCT_TABLES,
        ) as h,
    ):
        await tables.of(uuid4()).insert("shop_orders", [{"note": "theirs"}], returning=["id"])
        await tables.of(h.organization_id).insert("shop_orders", [{"note": "ours"}], returning=["id"])
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        (answer,) = [text for role, text in await h.messages(run_id) if role == "tool"]
    assert "ours" in answer and "theirs" not in answer


@pytest.mark.parametrize(
    "own", [{"crm_people": frozenset({"id"})}, {"t": frozenset({"organization_id"})}, {"t": frozenset()}]
)
def test_a_table_that_is_declared_wrongly_is_refused(own: Mapping[str, frozenset[str]]) -> None:
    with pytest.raises(ProgramFault, match=r"^scoped_tables: "):
        joined_tables(own)
    assert joined_tables({}) == ORG_SCOPED_TABLES
