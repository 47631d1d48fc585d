"""The migrations of this build pass as hosted Supabase runs them: by an owner who is no superuser, over rights that users get."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from agentic.local.postgres import temporary_postgres
from agentic.services.tools.scoped_queries import NotNull
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from agentic.storage.migrations import migrate, status
from agentic.storage.scoped_db import scoped_db
from hosted_database import hosted_database
from scoped_stage import planted

ORGANIZATION = UUID(int=1)


@pytest.fixture(scope="module")
def hosted() -> Iterator[str]:
    """A server of its own: roles belong to the whole server."""
    with temporary_postgres() as url:
        yield hosted_database(url, "project")


async def test_the_migrations_pass_and_leave_users_no_more_than_they_say(hosted: str) -> None:
    assert await migrate(hosted)
    assert {found.state for found in await status(hosted)} == {"applied"}
    async with await psycopg.AsyncConnection.connect(hosted) as connection:
        row = await (await connection.execute("select rolsuper from pg_roles where rolname = current_user")).fetchone()
        granted = await (
            await connection.execute(
                "select grantee, privilege_type, count(*) from information_schema.role_table_grants "
                "where table_schema in ('public', 'agent') and grantee in ('anon', 'authenticated') group by 1, 2"
            )
        ).fetchall()
    assert row == (False,)
    assert granted == [("authenticated", "SELECT", len(ORG_SCOPED_TABLES))]


async def test_its_owner_reaches_the_tables_of_organizations_as_the_service(hosted: str) -> None:
    await migrate(hosted)
    async with scoped_db(hosted, environment={}) as db:
        own = db.of(ORGANIZATION)
        for table in ORG_SCOPED_TABLES:
            await planted(own, table)
        assert len(await own.select("crm_people", ["id"], where=[NotNull("company_id")], limit=10)) == 2
