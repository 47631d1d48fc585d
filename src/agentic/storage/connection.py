"""Opens a database connection the way the whole package wants it, and says plainly when that fails."""

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from agentic.contract.errors import ProgramFault, StorageUnavailable

OLDEST_SERVER_VERSION = 150000
"""As `server_version` numbers it: what hosted Supabase runs, and what the migrations are written for."""

CONNECT_TIMEOUT_S = 10


class DatabaseUnreachable(StorageUnavailable):
    """The database did not accept a connection; the message names the place and never the password."""


class DatabaseUrlInvalid(ProgramFault):
    """What is given as database URL is none."""


async def connect(dsn: str, *, prepare_threshold: int | None = None) -> psycopg.AsyncConnection[DictRow]:
    """One connection in autocommit mode with rows as dictionaries.

    Args:
        dsn: The database as a URL or in the keyword form of libpq.
        prepare_threshold: After how many runs a statement is prepared on the server. None, for never, is safe behind a
            transaction pooler; a number is for direct connections only.

    Raises:
        DatabaseUnreachable: Nobody answers there, or the login is refused.
        DatabaseUrlInvalid: `dsn` cannot be read.
    """
    place = describe(dsn)
    try:
        return await psycopg.AsyncConnection.connect(
            dsn,
            autocommit=True,
            prepare_threshold=prepare_threshold,
            row_factory=dict_row,
            connect_timeout=CONNECT_TIMEOUT_S,
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnreachable(
            f"the database {place} cannot be reached: {_reason(error, dsn)}. "
            "Check that it runs, and that DATABASE_URL names it with the right user and password."
        ) from None


def describe(dsn: str) -> str:
    """Which database a URL means, for a message: host, port and name, no user and no password.

    Raises:
        DatabaseUrlInvalid: `dsn` cannot be read.
    """
    try:
        found = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq quotes what it could not read, the password with it
        raise DatabaseUrlInvalid(
            "the database URL cannot be read. It looks like postgresql://user:password@host:5432/name; characters such "
            "as @ : / # % in the password are written as %40 and so on."
        ) from None
    host, port, name = found.get("host"), found.get("port"), found.get("dbname")
    return f"{name or 'of the default name'} at {host or 'the local socket'}{f':{port}' if port else ''}"


def _reason(error: psycopg.OperationalError, dsn: str) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    password = str(conninfo_to_dict(dsn).get("password") or "")
    if not password:
        return said
    # as a word of its own: a short password must not blot out letters of the reason
    return re.sub(rf"(?<!\w){re.escape(password)}(?!\w)", "***", said)
