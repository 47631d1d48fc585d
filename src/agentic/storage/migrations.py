"""Brings a database to the schema of this build, and says how far one is.

One transaction a file. What was applied is recorded the way the Supabase CLI records it, so that either may continue
where the other stopped. The files are read by `migration_files.py`; what Supabase provides must be there already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg.rows import DictRow

from agentic.storage.connection import OLDEST_SERVER_VERSION, connect, describe
from agentic.storage.migration_errors import (
    DatabaseNewer,
    DatabaseNotOurs,
    MigrationChanged,
    MigrationFailed,
    MigrationOutOfOrder,
    RolesMissing,
    ServerTooOld,
)
from agentic.storage.migration_files import Migration, default_folder, read_migrations

_ONE_AT_A_TIME = 7_238_115_904_117
"""Key of the advisory lock that migrators of a database queue for; any number that nobody else uses."""

_RECORD_TABLE: LiteralString = """
create schema if not exists supabase_migrations;
create table if not exists supabase_migrations.schema_migrations (version text not null primary key);
alter table supabase_migrations.schema_migrations add column if not exists statements text[];
alter table supabase_migrations.schema_migrations add column if not exists name text;
"""
_RECORDED: LiteralString = """
select version, coalesce(statements, '{}') as statements from supabase_migrations.schema_migrations order by version
"""
_RECORD: LiteralString = (
    "insert into supabase_migrations.schema_migrations (version, name, statements) values (%s, %s, %s)"
)
_HAS_RECORDS: LiteralString = "select to_regclass('supabase_migrations.schema_migrations') is not null as answer"
_HAS_AGENT_SCHEMA: LiteralString = "select to_regnamespace('agent') is not null as answer"

_MISSING_ROLES: LiteralString = """
select string_agg(needed, ', ' order by needed) as roles
from unnest(array['anon', 'authenticated', 'service_role']) as needed
where not exists (select from pg_roles where rolname = needed)
"""

_Connection = psycopg.AsyncConnection[DictRow]
_Recorded = Mapping[str, Sequence[str]]


class MigrationState(StrEnum):
    """How a migration stands in a database."""

    APPLIED = "applied"
    """Recorded, with the content the file has."""
    PENDING = "pending"
    """Not yet applied."""
    CHANGED = "changed"
    """Recorded with another content than the file has."""
    UNKNOWN = "unknown"
    """Recorded, and this build has no such file."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A migration that this call applied."""

    version: str
    name: str


@dataclass(frozen=True, kw_only=True)
class MigrationStatus:
    """One migration and how it stands; `name` is None where only its version is known."""

    version: str
    name: str | None
    state: MigrationState


async def migrate(dsn: str, *, folder: Path | None = None) -> list[Applied]:
    """Applies what is missing, oldest first. Callers at the same time wait for each other and share the work.

    Args:
        dsn: The database; its user owns what is created.
        folder: Where the migration files are; None means those of this build.

    Returns:
        What this call applied: empty when the database was up to date.

    Raises:
        DatabaseUnreachable: Nobody answers there.
        MigrationError: One of its kinds. Files applied before the one at fault stay applied.
    """
    migrations = read_migrations(folder or default_folder())
    async with await connect(dsn) as connection:
        _check_server(connection, dsn)
        if folder is None:
            await _check_roles(connection, dsn)
        applied: list[Applied] = []
        while (done := await _apply_next(connection, migrations, dsn)) is not None:
            applied.append(Applied(version=done.version, name=done.name))
        return applied


async def status(dsn: str, *, folder: Path | None = None) -> list[MigrationStatus]:
    """How each migration stands, by version. Changes nothing.

    Args:
        dsn: The database.
        folder: Where the migration files are; None means those of this build.

    Raises:
        DatabaseUnreachable: Nobody answers there.
        MigrationFilesError: The files are at fault.
        ServerTooOld: The server is of a version that the migrations are not for.
    """
    known = {migration.version: migration for migration in read_migrations(folder or default_folder())}
    async with await connect(dsn) as connection:
        _check_server(connection, dsn)
        recorded = await _recorded(connection) if await _is_true(connection, _HAS_RECORDS) else {}
    return [
        MigrationStatus(
            version=version,
            name=known[version].name if version in known else None,
            state=_state(known.get(version), recorded.get(version)),
        )
        for version in sorted({*known, *recorded})
    ]


def _state(migration: Migration | None, statements: Sequence[str] | None) -> MigrationState:
    if migration is None:
        return MigrationState.UNKNOWN
    if statements is None:
        return MigrationState.PENDING
    # a version marked as applied by hand is recorded without statements
    if not statements or migration.is_recorded_as(list(statements)):
        return MigrationState.APPLIED
    return MigrationState.CHANGED


async def _apply_next(connection: _Connection, migrations: Sequence[Migration], dsn: str) -> Migration | None:
    """Applies the oldest missing migration in a transaction of its own; None when none is missing."""
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
        await connection.execute(_RECORD_TABLE)
        recorded = await _recorded(connection)
        await _check_is_ours(connection, recorded, dsn)
        _check_history(migrations, recorded, dsn)
        pending = next((migration for migration in migrations if migration.version not in recorded), None)
        if pending is not None:
            await _run(connection, pending)
            await connection.execute(_RECORD, (pending.version, pending.name, list(pending.statements)))
        return pending


async def _run(connection: _Connection, migration: Migration) -> None:
    for number, statement in enumerate(migration.statements, start=1):
        try:
            await connection.execute(statement)
        except psycopg.Error as error:
            said = [
                error.diag.message_primary or str(error).strip(),
                error.diag.message_detail,
                error.diag.message_hint,
            ]
            raise MigrationFailed(
                f"{migration.file}, statement {number} of {len(migration.statements)} failed: "
                f"{'; '.join(part for part in said if part)}. The whole file was rolled back; earlier files stay. "
                "Put right what the message names (the file, or what is in the database) and migrate again.",
                file=migration.file,
                statement=number,
                sqlstate=error.sqlstate,
            ) from error


def _check_server(connection: _Connection, dsn: str) -> None:
    version = connection.info.server_version
    if version < OLDEST_SERVER_VERSION:
        raise ServerTooOld(
            f"the database {describe(dsn)} runs on Postgres {version // 10000}; "
            f"version {OLDEST_SERVER_VERSION // 10000} or newer is needed. Upgrade the server or name another one."
        )


async def _check_roles(connection: _Connection, dsn: str) -> None:
    row = await (await connection.execute(_MISSING_ROLES)).fetchone()
    if row is not None and row["roles"] is not None:
        raise RolesMissing(
            f"the database {describe(dsn)} is on a plain Postgres: it lacks the roles {row['roles']} that Supabase "
            "provides. Run 'agentic db bootstrap' once, then migrate again; nothing was changed."
        )


async def _check_is_ours(connection: _Connection, recorded: _Recorded, dsn: str) -> None:
    if not recorded and await _is_true(connection, _HAS_AGENT_SCHEMA):
        raise DatabaseNotOurs(
            f"the database {describe(dsn)} has a schema 'agent', and no migration is recorded that made it: it is "
            "something else's, or made by hand. Name another database in DATABASE_URL; if the schema is left over "
            "and nobody needs it, drop it."
        )


def _check_history(migrations: Sequence[Migration], recorded: _Recorded, dsn: str) -> None:
    known = {migration.version: migration for migration in migrations}
    unknown = sorted(set(recorded) - set(known))
    if unknown:
        raise DatabaseNewer(
            f"the database {describe(dsn)} records migrations that this build does not have ({', '.join(unknown)}): "
            "a newer build or another project has migrated it. Use that build, or another database in DATABASE_URL."
        )
    for version, statements in recorded.items():
        if _state(known[version], statements) is MigrationState.CHANGED:
            raise MigrationChanged(
                f"{known[version].file} is not what was applied to the database {describe(dsn)}: it was edited since. "
                "Restore the file and put the change into a new migration."
            )
    newest = max(recorded, default="")
    for migration in migrations:
        if migration.version not in recorded and migration.version < newest:
            raise MigrationOutOfOrder(
                f"{migration.file} was never applied to the database {describe(dsn)}, which is already at {newest}. "
                "Give the file a newer version."
            )


async def _recorded(connection: _Connection) -> _Recorded:
    cursor = await connection.execute(_RECORDED)
    return {row["version"]: row["statements"] for row in await cursor.fetchall()}


async def _is_true(connection: _Connection, query: LiteralString) -> bool:
    row = await (await connection.execute(query)).fetchone()
    return bool(row and row["answer"])
