"""A database as hosted Supabase gives it to a project: its `postgres` owns it and is no superuser.

What a migration may do only as a superuser fails here as it would there, and what it makes in schema `public` is granted to users'
keys until it takes that back.
"""

from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from agentic.local.postgres import bootstrap_supabase

OWNER = "project_owner"
PASSWORD = "of-tests-alone"


def hosted_database(server: str, name: str) -> str:
    """Make the database, and its owner where it is the server's first; its URL for the owner.

    Args:
        server: URL of any database of the server, for a superuser. Roles belong to the whole server.
        name: of the database.
    """
    owner = sql.Identifier(OWNER)
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("select from pg_roles where rolname = %s", (OWNER,)).fetchone() is None:
            connection.execute(
                sql.SQL(
                    "create role {} login nosuperuser createrole createdb bypassrls replication password {} "
                    "in role anon, authenticated, service_role"
                ).format(owner, sql.Literal(PASSWORD))
            )
            connection.execute(sql.SQL("alter role {} set search_path = '$user', public, extensions").format(owner))
        connection.execute(sql.SQL("create database {} owner {}").format(sql.Identifier(name), owner))
    url = urlsplit(server)._replace(path=f"/{name}")
    bootstrap_supabase(url.geturl())
    with psycopg.connect(url.geturl(), autocommit=True) as connection:
        for what in ("tables", "functions", "sequences"):
            connection.execute(
                sql.SQL(
                    "alter default privileges for role {} in schema public grant all on {} to anon, authenticated, service_role"
                ).format(owner, sql.SQL(what))
            )
    where = url.netloc.rpartition("@")[2]
    return url._replace(netloc=f"{OWNER}:{PASSWORD}@{where}").geturl()
