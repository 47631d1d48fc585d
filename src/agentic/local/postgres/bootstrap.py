"""Gives a plain Postgres what Supabase brings along, so that the same migrations run on both.

Roles, `auth.*` and the `extensions` schema, from `shim.sql`. The tables of the platform are the migrations' business.
"""

from importlib import resources

import psycopg

_ALREADY_PROVIDED = """
select exists (select from pg_roles where rolname = 'supabase_admin')
    or exists (
      select from pg_namespace
      where nspname = 'auth' and obj_description(oid, 'pg_namespace') is distinct from %s
    )
"""
_OUR_COMMENT = "local stand-in for Supabase, made by agentic"


def bootstrap_supabase(dsn: str) -> bool:
    """Creates the roles, schemas and functions that Supabase provides, where nobody provides them yet.

    Safe to repeat, and safe for several processes and several databases of one server at once.

    Args:
        dsn: A database of a plain server, as a superuser.

    Returns:
        True when the stand-in is in place, False when the database has the real things (a Supabase, or an `auth` schema
        of somebody else) and nothing was touched.

    Raises:
        psycopg.Error: The database is unreachable, or the user may not create roles.
    """
    with psycopg.connect(dsn, prepare_threshold=None) as connection:
        row = connection.execute(_ALREADY_PROVIDED, (_OUR_COMMENT,)).fetchone()
        if row is None or row[0]:
            return False
        shim = resources.files(__package__).joinpath("shim.sql").read_bytes()
        connection.execute(shim)
    return True
