"""Laws of tenancy that hold for every table of the schema: a new migration is held to them without a new test."""

from typing import Final, LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

OF_NO_ORGANIZATION: Final = {
    "policy_versions": "counts changes by organization in `scope`, and those of the platform under the nil UUID",
    "webhook_drops": "counts by provider, reason and day: a forged delivery belongs to nobody",
}
ALSO_OF_ALL: Final = {
    "policy_rules": "a row without an organization is a rule of the platform",
    "prices": "a row without an organization is a price for all of them",
    "tool_changes": "a row without an organization tells of a tool written as code",
    "tool_contracts": "a row without an organization is of a tool written as code",
    "tool_releases": "a row without an organization is of a tool written as code",
}
"""Tables where the organization may be absent; every other one requires it."""
USERS: Final = ("anon", "authenticated")

TABLES: LiteralString = """
select c.relname as name, c.relrowsecurity as secured, a.attnotnull as required
from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' and not a.attisdropped
where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p')
"""
OTHER_RELATIONS: LiteralString = """
select relname as name from pg_class
where relnamespace = 'agent'::regnamespace and relkind not in ('r', 'p', 'i', 'I', 'S', 'c')
"""
# what the policies of tables in public show to whom is proved by scoped/test_row_security.py
POLICIES: LiteralString = """
select p.polname from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace <> 'public'::regnamespace
"""
FOREIGN_KEYS: LiteralString = """
select c.conname as name, array(
    select f.attname || ' to ' || t.attname
    from unnest(c.conkey, c.confkey) pair (here, there)
    join pg_attribute f on f.attrelid = c.conrelid and f.attnum = pair.here
    join pg_attribute t on t.attrelid = c.confrelid and t.attnum = pair.there
) as pairs
from pg_constraint c where c.contype = 'f' and c.connamespace = 'agent'::regnamespace
"""
# what a role may do to a relation or a column of it, to a sequence, to a function, or in the schema
GRANTS: LiteralString = """
with roles as (select unnest(%(roles)s::text[]) as role)
select role, c.relname as name from roles, pg_class c
where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and (
    has_table_privilege(role, c.oid, 'select, insert, update, delete, truncate, references, trigger')
    or has_any_column_privilege(role, c.oid, 'select, insert, update, references'))
union all
select role, c.relname from roles, pg_class c
where c.relnamespace = 'agent'::regnamespace and c.relkind = 'S' and has_sequence_privilege(role, c.oid, 'usage, select, update')
union all
select role, p.proname from roles, pg_proc p
where p.pronamespace = 'agent'::regnamespace and has_function_privilege(role, p.oid, 'execute')
union all
select role, 'schema agent' from roles where has_schema_privilege(role, 'agent', 'usage, create')
"""


async def _connected(database: str) -> psycopg.AsyncConnection[DictRow]:
    return await psycopg.AsyncConnection.connect(database, row_factory=dict_row)


async def _tables(connection: psycopg.AsyncConnection[DictRow]) -> dict[str, DictRow]:
    found = {row["name"]: row for row in await (await connection.execute(TABLES)).fetchall()}
    assert len(found) > 20, "these are not the tables of this schema"
    return found


@pytest.mark.guarantee("T1")
async def test_every_table_says_whose_each_row_is_or_stands_on_a_list_with_its_reason(direct_database: str) -> None:
    async with await _connected(direct_database) as connection:
        tables = await _tables(connection)
    assert {name for name, row in tables.items() if row["required"] is None} == set(OF_NO_ORGANIZATION)
    assert {name for name, row in tables.items() if row["required"] is False} == set(ALSO_OF_ALL)


@pytest.mark.guarantee("T1")
async def test_no_row_can_refer_to_a_row_of_another_organization(direct_database: str) -> None:
    async with await _connected(direct_database) as connection:
        keys = await (await connection.execute(FOREIGN_KEYS)).fetchall()
    assert keys
    assert [key["name"] for key in keys if "organization_id to organization_id" not in key["pairs"]] == []


@pytest.mark.guarantee("T1")
async def test_every_table_has_row_security_and_nothing_else_shows_rows(direct_database: str) -> None:
    async with await _connected(direct_database) as connection:
        tables = await _tables(connection)
        others = await (await connection.execute(OTHER_RELATIONS)).fetchall()
        policies = await (await connection.execute(POLICIES)).fetchall()
    assert [name for name, row in tables.items() if not row["secured"]] == []
    assert policies == [], "a policy opens a table to users: prove here what it shows to whom"
    assert others == [], "a view runs as its owner and would show every row: secure it, and name it here"


@pytest.mark.guarantee("T1")
async def test_a_key_of_a_user_may_do_nothing_with_any_table_sequence_or_function(direct_database: str) -> None:
    async with await _connected(direct_database) as connection:
        allowed = await (await connection.execute(GRANTS, {"roles": list(USERS)})).fetchall()
        service = await (await connection.execute(GRANTS, {"roles": ["service_role"]})).fetchall()
    assert allowed == []
    assert {row["name"] for row in service} >= {"runs", "schema agent", "claim_epochs"}, "the question sees grants"


@pytest.mark.guarantee("T1")
@pytest.mark.parametrize("role", USERS)
async def test_a_table_that_is_granted_by_mistake_still_shows_and_takes_no_row(direct_database: str, role: str) -> None:
    """Row security without a policy: rows that are there, of every organization, are there for nobody who asks with a user's key."""
    async with await _connected(direct_database) as connection:
        tables = await _tables(connection)
        await connection.execute(
            "insert into agent.webhook_drops (provider, reason, day) values ('courier', 'bad_signature', now()::date)"
        )
        await connection.execute(
            "insert into agent.members (organization_id, user_id, role) "
            "values (gen_random_uuid(), gen_random_uuid(), 'admin')"
        )
        name = sql.Identifier(role)
        await connection.execute(sql.SQL("grant usage on schema agent to {}").format(name))
        await connection.execute(
            sql.SQL("grant select, insert, delete on all tables in schema agent to {}").format(name)
        )
        await connection.execute(sql.SQL("set local role {}").format(name))
        for table in tables:
            at = sql.Identifier("agent", table)
            seen = await connection.execute(sql.SQL("select * from {}").format(at))
            assert await seen.fetchall() == [], table
            gone = await connection.execute(sql.SQL("delete from {}").format(at))
            assert gone.rowcount == 0, table
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            await connection.execute(
                "insert into agent.members (organization_id, user_id, role) "
                "values (gen_random_uuid(), gen_random_uuid(), 'admin')"
            )
