"""Which of the two ways to tables of organizations a process uses: Supabase's interface where it was told of one, else the database."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from agentic.contract.errors import ProgramFault
from agentic.services.tools.scoped_db import ScopedDatabase, ScopedDatabaseOver
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES, Tables
from agentic.storage.database import Database
from agentic.storage.pool import open_pool
from agentic.storage.scoped_psycopg import PostgresRows

URL_VARIABLE: Final = "SUPABASE_URL"
KEY_VARIABLE: Final = "SUPABASE_SERVICE_ROLE_KEY"
MAX_CONNECTIONS: Final = 4
"""Of its own, so that tools which read much leave those of the calls' journal alone."""


@asynccontextmanager
async def scoped_db(
    database_url: str, *, tables: Tables = ORG_SCOPED_TABLES, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[ScopedDatabase]:
    """The tables of organizations until the block ends.

    Args:
        database_url: used unless the environment names a Supabase project.
        tables: which there are, beside none.
        environment: where ``SUPABASE_URL`` and ``SUPABASE_SERVICE_ROLE_KEY`` are looked up.

    Raises:
        ProgramFault: one variable is set and the other is not, the URL is not one a key may be sent to, or the client for
            Supabase is not installed.
        StorageUnavailable: nobody answers at the database URL.
    """
    url, key = environment.get(URL_VARIABLE), environment.get(KEY_VARIABLE)
    if not url:
        if key:
            raise ProgramFault(f"{KEY_VARIABLE} is set and {URL_VARIABLE} is not; set both, or neither")
        async with open_pool(database_url, max_size=MAX_CONNECTIONS) as pool:
            yield ScopedDatabaseOver(PostgresRows(Database(pool)), tables=tables)
        return
    if not key:
        raise ProgramFault(f"{URL_VARIABLE} is set and {KEY_VARIABLE} is not; set both, or neither")
    try:
        from agentic.storage.scoped_supabase import SupabaseRows  # an extra
    except ImportError as error:
        raise ProgramFault(
            f"{URL_VARIABLE} is set and the client for it is not installed; install agentic-platform[supabase]"
        ) from error
    async with SupabaseRows(url=url, key=key) as rows:
        yield ScopedDatabaseOver(rows, tables=tables)


def joined_tables(own: Tables) -> Tables:
    """The package's tables and a product's.

    Raises:
        ProgramFault: a product declares a table of the package, or the organization's column, which is in every query already.
    """
    for table, columns in own.items():
        if table in ORG_SCOPED_TABLES:
            raise ProgramFault(f"scoped_tables: {table} is a table of the package; declare tables of your own")
        if "organization_id" in columns or not columns:
            raise ProgramFault(
                f"scoped_tables: {table} lists its columns without organization_id, which it has to have"
            )
    return {**ORG_SCOPED_TABLES, **own}
