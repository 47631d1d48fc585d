"""Organization B sees and changes nothing of organization A: every verb, every table, both adapters (T1)."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from agentic.services.tools.scoped_db import ReferenceMissing, ScopedDatabase
from agentic.services.tools.scoped_queries import Eq, NotNull, Row
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from scoped_stage import KEYS, PRODUCT_TABLES, Stage, of_key, planted

TABLES = sorted([*ORG_SCOPED_TABLES, *PRODUCT_TABLES])
pytestmark = pytest.mark.guarantee("T1")


def stored(stage: Stage, table: str, organization: object) -> list[DictRow]:
    """The rows of an organization as the owner of the database sees them."""
    with psycopg.connect(stage.direct, row_factory=dict_row) as connection:
        asked = sql.SQL("select * from {} where organization_id = %s").format(sql.Identifier("public", table))
        return connection.execute(asked, (organization,)).fetchall()


def change_of(stage: Stage, table: str) -> Mapping[str, Any]:
    """A change that the table takes."""
    if table == "crm_list_members":
        return {"added_at": "2020-01-01T00:00:00Z"}
    return {"note": "mine"} if table == "shop_orders" else {"deleted_at": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize("table", TABLES)
async def test_every_verb_of_every_table_stays_within_its_organization(
    stage: Stage, db: ScopedDatabase, table: str
) -> None:
    a, b = uuid4(), uuid4()
    row = await planted(db.of(a), table)
    before = stored(stage, table, a)
    key = KEYS.get(table, ("id",))
    mine = db.of(b)

    for where in (of_key(row), [NotNull(key[0])]):
        assert await mine.select(table, key, where=where, limit=10) == []
        assert await mine.update(table, change_of(stage, table), where=where, returning=key) == []
        assert await mine.delete(table, where=where, returning=key) == []
    assert await mine.select(table, key, limit=10) == []
    assert stored(stage, table, a) == before

    assert await db.of(a).select(table, key, where=of_key(row), limit=10) == [row], "the conditions do find it"
    assert await db.of(a).update(table, change_of(stage, table), where=of_key(row), returning=key) == [row]
    assert await db.of(a).delete(table, where=of_key(row), returning=key) == [row]


@pytest.mark.parametrize("table", sorted({*TABLES} - {"crm_list_members"}))
async def test_a_foreign_id_is_free_to_whoever_else_writes_it(stage: Stage, db: ScopedDatabase, table: str) -> None:
    a, b = uuid4(), uuid4()
    row = await planted(db.of(a), table)
    own = await planted(db.of(b), table)
    before = stored(stage, table, a)
    (copy,) = stored(stage, table, b)
    generated = {column for column in copy if column.startswith("live_")}
    values = {name: value for name, value in copy.items() if name not in {"organization_id", *generated}}
    await db.of(b).delete(table, where=of_key(own), returning=["id"])

    for upsert in (False, True):
        wanted = [{**values, "id": row["id"]}]
        saved = await (
            db.of(b).upsert(table, wanted, on=["id"], returning=["id"])
            if upsert
            else db.of(b).insert(table, wanted, returning=["id"])
        )
        assert saved == [row]
    assert stored(stage, table, a) == before
    assert len(stored(stage, table, b)) == 1


async def test_a_foreign_id_looks_like_one_that_does_not_exist(db: ScopedDatabase) -> None:
    a, b = uuid4(), uuid4()
    company, person, friends = [
        await planted(db.of(a), table) for table in ("crm_companies", "crm_people", "crm_lists")
    ]
    own: Row = await planted(db.of(b), "crm_lists")

    async def refused(table: str, values: Mapping[str, object]) -> str:
        with pytest.raises(ReferenceMissing) as error:
            await db.of(b).insert(table, [values], returning=["person_id" if "list" in table else "id"])
        return str(error.value)

    ada = {"name": "Ada", "name_key": "ada"}
    assert await refused("crm_people", {**ada, "company_id": company["id"]}) == await refused(
        "crm_people", {**ada, "company_id": uuid4()}
    )
    for list_id, person_id in [(own["id"], person["id"]), (friends["id"], person["id"])]:
        foreign = await refused("crm_list_members", {"list_id": list_id, "person_id": person_id})
        missing = await refused("crm_list_members", {"list_id": list_id, "person_id": uuid4()})
        assert {foreign, missing} <= {
            f"crm_list_members: a row refers to one that does not exist in this organization, or is still referred to ({rule})"
            for rule in ("crm_list_members_list", "crm_list_members_person")
        }


async def test_the_same_key_in_two_organizations_is_two_rows(stage: Stage, db: ScopedDatabase) -> None:
    a, b = uuid4(), uuid4()
    for organization, name in ((a, "Ada"), (b, "Other Ada")):
        await db.of(organization).upsert(
            "crm_people",
            [{"name": name, "name_key": "ada", "email": "ada@a.test", "email_key": "ada@a.test"}],
            on=["live_email_key"],
            returning=["id"],
        )
    assert [row["name"] for row in stored(stage, "crm_people", a)] == ["Ada"]
    found = await db.of(b).select("crm_people", ["name"], where=[Eq("email_key", "ada@a.test")], limit=10)
    assert found == [{"name": "Other Ada"}]
