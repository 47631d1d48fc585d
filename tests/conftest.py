"""The databases that tests run against: real, fresh for each test, gone afterwards.

One embedded server serves the whole test run, all workers of it; a database of a test is a clone of a migrated
template. `AGENTIC_TEST_DATABASE_URL` names another server (a superuser's URL) to use in its place. With
`AGENTIC_TEST_POOLER` set, what is tested reaches its databases through a transaction pooler, which `make test-pooler` does.
"""

import asyncio
import gc
import os
import signal
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from agentic.local.postgres import EmbeddedPostgres, bootstrap_supabase
from agentic.storage.migrations import migrate
from memory_folder import run_folder
from transaction_pooler import binary, transaction_pooler

_RUN = "AGENTIC_TEST_RUN"
_FOLDER = "AGENTIC_TEST_FOLDER"
_POOLER = "AGENTIC_TEST_POOLER"
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "200"}
_of_the_run = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Names the run and its folder once; workers inherit both and so share the server. Nobody inherits a deaf ear for Ctrl-C."""
    if not hasattr(config, "workerinput"):
        os.environ[_RUN] = uuid.uuid4().hex[:12]
        os.environ[_FOLDER] = str(_of_the_run.enter_context(run_folder()))
        if (
            signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ):  # as a shell's background has it; tests interrupt processes
            signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares every search for garbage the modules and the tests, which stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the server and the run's folder when the last worker has ended."""
    if not hasattr(config, "workerinput"):
        EmbeddedPostgres(_server_root()).destroy()
        _of_the_run.close()


def _server_root() -> Path:
    # not pytest's own folder: as root, the account that runs Postgres may not enter it
    return Path(os.environ[_FOLDER]) / "postgres"


def database_url(server: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """URL of the server's database `postgres`, as superuser, with the roles and functions of Supabase."""
    given = os.environ.get("AGENTIC_TEST_DATABASE_URL")
    if given:
        bootstrap_supabase(given)
        yield given
        return
    with EmbeddedPostgres(_server_root(), settings=_SETTINGS) as url:
        bootstrap_supabase(url)
        yield url


@pytest.fixture(scope="session")
def server(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """One connection to create and drop databases over."""
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(postgres_dsn: str, server: psycopg.Connection) -> str:
    """Name of a migrated database that nobody is connected to; the first worker makes it."""
    name = f"template_{os.environ[_RUN]}"
    # `postgres` is one place for all workers, a session lock does for a session's fixture
    server.execute("select pg_advisory_lock(1)")
    try:
        if server.execute("select from pg_database where datname = %s", (name,)).fetchone() is None:
            draft = f"{name}_draft"
            server.execute(sql.SQL("create database {}").format(sql.Identifier(draft)))
            bootstrap_supabase(database_url(postgres_dsn, draft))
            with ThreadPoolExecutor(1) as thread:  # pytest-asyncio's own loop is left alone
                thread.submit(asyncio.run, migrate(database_url(postgres_dsn, draft))).result(timeout=60)
            server.execute(
                sql.SQL("alter database {} rename to {}").format(sql.Identifier(draft), sql.Identifier(name))
            )
    finally:
        server.execute("select pg_advisory_unlock(1)")
    return name


@pytest.fixture(scope="session")
def pooler(postgres_dsn: str) -> Iterator[str]:
    """URL of the server's database `postgres` through a transaction pooler; there is one a worker."""
    if binary() is None and _POOLER not in os.environ:
        pytest.skip("pgbouncer is not installed; 'make test-pooler' needs it too")
    with transaction_pooler(postgres_dsn) as url:
        yield url


@pytest.fixture(scope="session")
def entrance(request: pytest.FixtureRequest, postgres_dsn: str) -> str:
    """URL by which tests reach the server: its own, or the pooler's. Databases are made and dropped past the pooler."""
    return str(request.getfixturevalue("pooler")) if _POOLER in os.environ else postgres_dsn


@pytest.fixture
def database(entrance: str, server: psycopg.Connection, template: str) -> Iterator[str]:
    """URL of a fresh, migrated database, as its owner. It is dropped after the test."""
    yield from _fresh(entrance, server, template)


@pytest.fixture
def empty_database(entrance: str, server: psycopg.Connection) -> Iterator[str]:
    """URL of a fresh database that no migration has touched and that has nothing of Supabase but the roles."""
    yield from _fresh(entrance, server, "template1")


@pytest.fixture
def direct_database(postgres_dsn: str, server: psycopg.Connection, template: str) -> Iterator[str]:
    """As `database`, always past the pooler: for what a pooler in between would hide."""
    yield from _fresh(postgres_dsn, server, template)


@pytest.fixture
def pooled_database(pooler: str, server: psycopg.Connection, template: str) -> Iterator[str]:
    """As `database`, always through the pooler."""
    yield from _fresh(pooler, server, template)


def _fresh(entrance: str, server: psycopg.Connection, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    # copying files takes a third of the time that copying through the log does, and brings the first connection's caches along
    copy = sql.SQL("create database {} template {} strategy file_copy")
    server.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
    yield database_url(entrance, name)
    server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
