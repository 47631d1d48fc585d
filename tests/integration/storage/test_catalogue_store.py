"""Live state of tools as rows: each change is one compare-and-set that keeps who made it, in one organization or in all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from pydantic import BaseModel

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.live import InFlight, ReleaseState
from agentic.storage.catalogue_store import PostgresCatalogueStore
from agentic.storage.database import Database
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.pool import open_pool

HERE, ELSEWHERE, ADMIN, OPERATOR = uuid4(), uuid4(), uuid4(), uuid4()
TOOL = "crm.save"


class Words(BaseModel):
    text: str


@internal_tool(TOOL, "Saves.", side_effects="write", repeatable=False)
async def save(ctx: CallContext, args: Words) -> list[str]:
    return []


@pytest.fixture
async def db(database: str) -> AsyncIterator[Database]:
    async with open_pool(database, max_size=8) as pool:
        made = Database(pool)
        await PostgresMemberStore(made).put(HERE, ADMIN, Role.ADMIN)
        await PostgresMemberStore(made).put(HERE, OPERATOR, Role.OPERATOR)
        store = PostgresCatalogueStore(made)
        await store.publish([save.spec, save.spec.model_copy(update={"version": 2})])
        yield made


@pytest.fixture
def store(db: Database) -> PostgresCatalogueStore:
    return PostgresCatalogueStore(db)


async def changes(db: Database) -> list[tuple[Any, ...]]:
    found = await db.all("select * from agent.tool_changes order by id", {})
    return [
        (row["organization_id"], row["tool"], row["version"], row["change"], row["in_flight"], row["changed_by"])
        for row in found
    ]


async def test_a_switch_moves_once_and_keeps_who_moved_it(store: PostgresCatalogueStore, db: Database) -> None:
    async def switch(enabled: bool, user_id: UUID | None = ADMIN) -> bool:
        return await store.set_enabled(HERE, TOOL, enabled=enabled, user_id=user_id)

    moved = [await switch(True), await switch(False), await switch(False), await switch(True), await switch(True, None)]
    assert moved == [False, True, False, True, False]
    assert await changes(db) == [
        (HERE, TOOL, None, "disabled", None, ADMIN),
        (HERE, TOOL, None, "enabled", None, ADMIN),
    ]


async def test_switching_takes_the_role_admin_and_a_tool_that_is_known(
    store: PostgresCatalogueStore, db: Database
) -> None:
    for organization_id, user_id in ((HERE, OPERATOR), (ELSEWHERE, ADMIN), (HERE, uuid4())):
        with pytest.raises(NotPermitted, match="role admin"):
            await store.set_enabled(organization_id, TOOL, enabled=False, user_id=user_id)
    with pytest.raises(NotFound, match=r"there is no tool 'crm\.svae'"):
        await store.set_enabled(HERE, "crm.svae", enabled=False, user_id=ADMIN)
    assert await changes(db) == []
    assert (await store.live(HERE)).off == frozenset()


async def test_a_release_goes_forward_only(store: PostgresCatalogueStore, db: Database) -> None:
    async def move(state: Any, in_flight: InFlight | None = None) -> bool:
        return (await store.release(HERE, TOOL, 1, state=state, in_flight=in_flight, user_id=ADMIN)).changed

    assert [await move(ReleaseState.DEPRECATED), await move(ReleaseState.DEPRECATED)] == [True, False]
    assert await move(ReleaseState.REVOKED, InFlight.FINISH)
    [revoked] = await db.all("select revoked_at, deprecated_at from agent.tool_releases", {})
    with pytest.raises(Conflict, match=r"crm\.save version 1 is revoked \(finish\), which is not taken back"):
        await move(ReleaseState.DEPRECATED)
    assert [await move(ReleaseState.REVOKED, InFlight.REFUSE), await move(ReleaseState.REVOKED, InFlight.REFUSE)] == [
        True,
        False,
    ]
    with pytest.raises(Conflict, match=r"is revoked \(refuse\)"):
        await move(ReleaseState.REVOKED, InFlight.FINISH)
    assert await db.all("select revoked_at, deprecated_at from agent.tool_releases", {}) == [revoked], "times stay"
    assert [(change[3], change[4]) for change in await changes(db)] == [
        ("deprecated", None),
        ("revoked", "finish"),
        ("revoked", "refuse"),
    ]


async def test_a_version_can_be_revoked_at_once_and_the_others_stay_active(store: PostgresCatalogueStore) -> None:
    await store.release(HERE, TOOL, 2, state=ReleaseState.REVOKED, in_flight=InFlight.REFUSE)
    live = await store.live(ELSEWHERE)
    assert dict(live.releases) == {(TOOL, 2): ReleaseState.REVOKED}, "code moves in every organization"
    assert live.offers(save.spec)
    with pytest.raises(NotFound, match="of version 3"):
        await store.release(HERE, TOOL, 3, state=ReleaseState.DEPRECATED)


async def test_of_many_who_move_a_release_one_moves_it(store: PostgresCatalogueStore, db: Database) -> None:
    barrier = asyncio.Barrier(8)

    async def move() -> bool:
        async with asyncio.timeout(30):
            await barrier.wait()
            moved = await store.release(HERE, TOOL, 1, state=ReleaseState.REVOKED, in_flight=InFlight.REFUSE)
        return moved.changed

    assert sum(await asyncio.gather(*(move() for _ in range(8)))) == 1
    assert len(await changes(db)) == 1


async def test_a_tool_is_shown_with_its_versions_and_who_changed_them(store: PostgresCatalogueStore) -> None:
    await store.release(HERE, TOOL, 1, state=ReleaseState.DEPRECATED, user_id=ADMIN)
    await store.set_enabled(HERE, TOOL, enabled=False, user_id=ADMIN)
    shown = await store.tool(HERE, TOOL)
    assert (shown["version"], shown["enabled"], shown["release"]) == (2, False, "active")
    assert [(one["version"], one["release"]) for one in shown["versions"]] == [(2, "active"), (1, "deprecated")]
    assert [(one["change"], one["changed_by"]) for one in shown["changes"]] == [
        ("disabled", ADMIN),
        ("deprecated", ADMIN),
    ]
    elsewhere = await store.tool(ELSEWHERE, TOOL)
    assert [one["change"] for one in elsewhere["changes"]] == ["deprecated"]
    with pytest.raises(NotFound):
        await store.tool(HERE, "crm.none")


async def test_the_record_of_changes_cannot_be_changed_and_the_tables_are_closed(
    store: PostgresCatalogueStore, db: Database, database: str
) -> None:
    await store.set_enabled(HERE, TOOL, enabled=False)
    for statement in ("update agent.tool_changes set changed_by = null", "delete from agent.tool_changes"):
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
                await connection.execute(statement)
    secured = await db.all(
        "select relname from pg_class where relname in ('tool_releases', 'tool_changes') and relrowsecurity order by 1",
        {},
    )
    assert [row["relname"] for row in secured] == ["tool_changes", "tool_releases"]
    granted = await db.all(
        "select distinct grantee from information_schema.role_table_grants "
        "where table_schema = 'agent' and table_name in ('tool_releases', 'tool_changes') and grantee <> current_user",
        {},
    )
    assert [row["grantee"] for row in granted] == ["service_role"]
