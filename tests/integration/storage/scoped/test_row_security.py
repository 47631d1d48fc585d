"""The second guard, for users' own keys: row level security shows a person the rows of one organization, and takes none (T1)."""

import json
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from agentic.contract.errors import ProgramFault
from agentic.contract.json_types import JsonValue
from agentic.services.tools.scoped_queries import NotNull
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from scoped_stage import KEYS, Stage, claims_of, planted

pytestmark = pytest.mark.guarantee("T1")
TABLES = sorted(ORG_SCOPED_TABLES)

POLICIES: LiteralString = """
select tablename, policyname, permissive, roles::text[] as roles, cmd, with_check from pg_policies
where schemaname = 'public' order by tablename
"""
GRANTS: LiteralString = """
select grantee, table_name, array_agg(privilege_type::text order by privilege_type) as may
from information_schema.role_table_grants
where table_schema = 'public' and grantee in ('anon', 'authenticated', 'service_role', 'PUBLIC') group by 1, 2 order by 1, 2
"""
COLUMN_GRANTS: LiteralString = """
select grantee, table_name, privilege_type from information_schema.column_privileges
where table_schema = 'public' and grantee in ('anon', 'PUBLIC')
"""


@pytest.mark.parametrize("table", TABLES)
async def test_a_signed_in_person_reads_the_rows_of_their_organization_alone(
    stage: Stage, adapter: str, table: str
) -> None:
    a, b = uuid4(), uuid4()
    async with stage.tables(adapter) as service:
        row = await planted(service.of(a), table)
    key = KEYS.get(table, ("id",))
    async with stage.tables(adapter, claims_of(a)) as own:
        assert await own.of(a).select(table, key, limit=10) == [row]
        assert await own.of(b).select(table, key, limit=10) == []
    nobody: dict[str, JsonValue] = {"role": "authenticated", "sub": str(uuid4())}
    of_user: dict[str, JsonValue] = {**nobody, "user_metadata": {"organization_id": str(a)}}
    for claims in (claims_of(b), nobody, of_user):
        async with stage.tables(adapter, claims) as foreign:
            assert await foreign.of(a).select(table, key, limit=10) == []


async def test_what_was_noticed_about_a_user_is_shown_to_that_user_alone(stage: Stage, adapter: str) -> None:
    a, ada, ben = uuid4(), str(uuid4()), str(uuid4())
    memory = {"kind": "preference", "key": "tone", "text": "Writes in Norwegian.", "subject_kind": "user"}
    async with stage.tables(adapter) as service:
        await service.of(a).insert("agent_memories", [{**memory, "subject_ref": ada}], returning=("id",))
    for who, seen in ((ada, [{"subject_ref": ada}]), (ben, [])):
        async with stage.tables(adapter, {**claims_of(a), "sub": who}) as own:
            assert await own.of(a).select("agent_memories", ("subject_ref",), limit=10) == seen


@pytest.mark.parametrize("table", TABLES)
async def test_a_read_without_any_condition_shows_a_person_one_organization(stage: Stage, table: str) -> None:
    a, b = uuid4(), uuid4()
    async with stage.tables("psycopg") as service:
        for organization in (a, b):
            await planted(service.of(organization), table)
    async with await psycopg.AsyncConnection.connect(stage.direct) as connection:
        await connection.execute(
            "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %s, true)",
            (json.dumps(claims_of(a)),),
        )
        query = sql.SQL("select distinct organization_id from public.{}").format(sql.Identifier(table))
        assert await (await connection.execute(query)).fetchall() == [(a,)]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("role", ["authenticated", "anon"])
async def test_no_key_of_a_user_writes(stage: Stage, adapter: str, role: str, table: str) -> None:
    a = uuid4()
    async with stage.tables(adapter) as service:
        row = await planted(service.of(a), table)
    key = KEYS.get(table, ("id",))
    change = {"added_at" if table == "crm_list_members" else "created_at": "2020-01-01T00:00:00Z"}
    async with stage.tables(adapter, {**claims_of(a), "role": role}) as user:
        own = user.of(a)
        with pytest.raises(ProgramFault, match=f"permission denied for table {table}"):
            await own.insert(table, [row], returning=key)
        with pytest.raises(ProgramFault, match=f"permission denied for table {table}"):
            await own.update(table, change, where=[NotNull(key[0])], returning=key)
        with pytest.raises(ProgramFault, match=f"permission denied for table {table}"):
            await own.delete(table, where=[NotNull(key[0])], returning=key)
        if role == "anon":
            with pytest.raises(ProgramFault, match=f"permission denied for table {table}"):
                await own.select(table, key, limit=1)
    async with stage.tables(adapter) as service:
        assert await service.of(a).select(table, key, limit=10) == [row]


async def test_each_table_has_one_policy_that_shows_and_none_that_takes(direct_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, row_factory=dict_row) as connection:
        found = await (await connection.execute(POLICIES)).fetchall()
    assert found == [
        {
            "tablename": table,
            "policyname": f"{table}_of_organization",
            "permissive": "PERMISSIVE",
            "roles": ["authenticated"],
            "cmd": "SELECT",
            "with_check": None,
        }
        for table in TABLES
    ]


async def test_each_role_may_do_what_it_needs_and_no_more(direct_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(direct_database, row_factory=dict_row) as connection:
        found = await (await connection.execute(GRANTS)).fetchall()
        assert await (await connection.execute(COLUMN_GRANTS)).fetchall() == []
    may = {"authenticated": ["SELECT"], "service_role": ["DELETE", "INSERT", "SELECT", "UPDATE"]}
    assert found == [
        {"grantee": role, "table_name": table, "may": rights} for role, rights in may.items() for table in TABLES
    ]
