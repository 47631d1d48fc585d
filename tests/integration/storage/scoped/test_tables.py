"""What tools may reach is what the migrations make, and every table of it is led by its organization."""

from typing import LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row

from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES

COLUMNS: LiteralString = """
select table_name, array_agg(column_name::text) as columns,
    bool_and(is_nullable = 'NO') filter (where column_name = 'organization_id') as owned
from information_schema.columns where table_schema = 'public' group by table_name
"""
# the first column of every index, those behind keys and unique rules included
INDEXES: LiteralString = """
select i.indexrelid::regclass::text as name, a.attname as first
from pg_index i join pg_class c on c.oid = i.indrelid
left join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where c.relnamespace = 'public'::regnamespace
"""
FOREIGN_KEYS: LiteralString = """
select c.conname as name, array(
    select f.attname || ' to ' || t.attname from unnest(c.conkey, c.confkey) pair (here, there)
    join pg_attribute f on f.attrelid = c.conrelid and f.attnum = pair.here
    join pg_attribute t on t.attrelid = c.confrelid and t.attnum = pair.there
) as pairs,
exists (
    select from pg_index i where i.indrelid = c.conrelid and i.indkey::int2[] @> c.conkey
) as indexed
from pg_constraint c where c.contype = 'f' and c.connamespace = 'public'::regnamespace
"""


@pytest.mark.guarantee("T1")
async def test_the_tables_that_may_be_reached_are_those_that_there_are_column_for_column(direct_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, row_factory=dict_row) as connection:
        found = await (await connection.execute(COLUMNS)).fetchall()
    assert {row["table_name"]: frozenset(row["columns"]) - {"organization_id"} for row in found} == ORG_SCOPED_TABLES
    assert all(row["owned"] for row in found), "every row says whose it is"


async def test_every_index_is_led_by_the_organization(direct_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, row_factory=dict_row) as connection:
        found = await (await connection.execute(INDEXES)).fetchall()
    assert len(found) > 10
    assert [row["name"] for row in found if row["first"] != "organization_id"] == []


@pytest.mark.guarantee("T1")
async def test_no_row_refers_to_a_row_of_another_organization(direct_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, row_factory=dict_row) as connection:
        found = await (await connection.execute(FOREIGN_KEYS)).fetchall()
    assert {row["name"] for row in found} == {"crm_people_company", "crm_list_members_list", "crm_list_members_person"}
    assert [row["name"] for row in found if "organization_id to organization_id" not in row["pairs"]] == []
    assert [row["name"] for row in found if not row["indexed"]] == []
