"""A plain server gets what Supabase provides, once, whoever asks and however often."""

import json
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from agentic.local.postgres import bootstrap_supabase, temporary_postgres

USER_ID = "6d1f7c2e-0f43-4b0e-9a53-7d1f1f0c9b11"


def test_the_claims_of_a_request_are_read_as_on_supabase(empty_database: str) -> None:
    assert bootstrap_supabase(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("set local role authenticated")
        assert connection.execute("select auth.uid(), auth.role(), auth.jwt()").fetchone() == (None, None, None)
        claims = {"sub": USER_ID, "role": "authenticated", "org": "shop"}
        connection.execute("select set_config('request.jwt.claims', %s, true)", (json.dumps(claims),))
        row = connection.execute("select auth.uid()::text, auth.role(), auth.jwt()").fetchone()
        assert row == (USER_ID, "authenticated", claims)


def test_the_service_role_passes_row_security_and_the_others_do_not(empty_database: str) -> None:
    bootstrap_supabase(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("create table public.t (id int); alter table public.t enable row level security")
        connection.execute("insert into public.t values (1)")
        for role, seen in {"anon": 0, "authenticated": 0, "service_role": 1}.items():
            connection.execute(f"set local role {role}")
            assert connection.execute("select count(*) from public.t").fetchone() == (seen,), role
            connection.execute("reset role")


def test_many_at_once_on_several_databases_of_one_new_server() -> None:
    with temporary_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        # roles belong to the server: the databases race for them
        connection.execute("drop owned by anon, authenticated, service_role, authenticator")
        connection.execute("drop role anon, authenticated, service_role, authenticator")
        connection.execute("create database other")
        urls = [url, url.replace("/postgres?", "/other?")] * 3
        with ThreadPoolExecutor(len(urls)) as threads:
            assert list(threads.map(bootstrap_supabase, urls, timeout=30)) == [True] * len(urls)


@pytest.mark.parametrize("theirs", ["create role supabase_admin", "create schema auth"])
def test_a_server_that_has_the_real_things_is_left_alone(theirs: str) -> None:
    with temporary_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create database hosted")
        hosted = url.replace("/postgres?", "/hosted?")
        with psycopg.connect(hosted, autocommit=True) as theirs_connection:
            theirs_connection.execute(theirs.encode())
            assert not bootstrap_supabase(hosted)
            assert theirs_connection.execute("select to_regprocedure('auth.uid()')").fetchone() == (None,)
