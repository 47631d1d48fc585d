"""A plain Postgres lacks what Supabase provides; that is said before anything is written."""

from collections.abc import Iterator

import psycopg
import pytest

from agentic.local.postgres import temporary_postgres
from agentic.storage.migration_errors import RolesMissing
from agentic.storage.migrations import migrate


@pytest.fixture(scope="module")
def plain_postgres() -> Iterator[str]:
    """A server of its own: roles belong to the whole server."""
    with temporary_postgres() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter role anon rename to somebody_else")
        yield url


async def test_missing_roles_are_named_with_the_remedy_and_nothing_is_written(plain_postgres: str) -> None:
    with pytest.raises(RolesMissing, match=r"lacks the roles anon .*'agentic db bootstrap'"):
        await migrate(plain_postgres)
    with psycopg.connect(plain_postgres) as connection:
        schemas = connection.execute(
            "select to_regnamespace('agent'), to_regnamespace('supabase_migrations')"
        ).fetchone()
    assert schemas == (None, None)
