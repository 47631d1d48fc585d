"""The Supabase CLI takes the migrations as `agentic db migrate` does, and finds nothing wrong in what they make."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow

from agentic.local.postgres import EmbeddedPostgres, bootstrap_supabase
from agentic.local.postgres.binaries import Binaries, installed_binaries
from agentic.storage.migration_files import default_folder
from agentic.storage.migrations import migrate, status
from fetch_supabase import CLI
from hosted_database import hosted_database

pytestmark = [
    pytest.mark.skipif(not CLI.is_file(), reason="there is no Supabase CLI here; 'make supabase-check' fetches it"),
    pytest.mark.timeout(180),
]
COMMAND_S = 60
NO_LINTER = "no Postgres here has plpgsql_check; Debian's package is postgresql-<version>-plpgsql-check"

Supabase = Callable[..., str]
"""Runs a command of the CLI and gives its standard output."""
RECORDED = "select version, name, statements from supabase_migrations.schema_migrations order by version"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that the CLI reaches, over TCP on loopback."""

    url: str
    checks_functions: bool

    def project(self) -> str:
        """URL of a new database for its owner, as hosted Supabase has it."""
        name = f"project_{uuid4().hex[:12]}"
        url = hosted_database(self.url, name)
        if self.checks_functions:  # an extension that only a superuser may create; on hosted Supabase it is allowed
            with psycopg.connect(self.url.replace("/postgres?", f"/{name}?")) as connection:
                connection.execute("create extension plpgsql_check schema extensions")
        return url


def best_binaries() -> tuple[Binaries, bool]:
    """The first Postgres that can check functions, else the first."""
    found = list(installed_binaries())
    for binaries in found:
        if Path(f"/usr/share/postgresql/{binaries.major}/extension/plpgsql_check.control").is_file() and (
            binaries.package_dir is None
        ):
            return binaries, True
    return found[0], False


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    binaries, checks_functions = best_binaries()
    parent = Path(tempfile.mkdtemp(prefix="agentic-cli-"))
    parent.chmod(0o711)  # as root, the account that runs Postgres has to pass
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings = {"fsync": "off", "full_page_writes": "off", "listen_addresses": "127.0.0.1", "port": str(port)}
    postgres = EmbeddedPostgres(parent / "postgres", binaries=binaries, settings=settings)
    try:
        over_socket = psycopg.conninfo.conninfo_to_dict(postgres.start())
        bootstrap_supabase(postgres.start())
        login = f"{over_socket['user']}:{over_socket['password']}"
        url = f"postgresql://{login}@127.0.0.1:{port}/postgres?sslmode=disable"
        yield Server(url=url, checks_functions=checks_functions)
    finally:
        postgres.destroy()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """The folder of the project's migrations, with those of this build."""
    return shutil.copytree(default_folder(), tmp_path / "supabase" / "migrations")


@pytest.fixture
def supabase(tmp_path: Path, migrations: Path) -> Supabase:
    """The CLI in a project; it reports to nobody and reaches no other machine. Raises when it fails unless that is expected."""
    del migrations
    environment = {
        "PATH": os.defpath,
        "HOME": str(tmp_path),
        "DO_NOT_TRACK": "1",
        "SUPABASE_TELEMETRY_DISABLED": "1",
        "SUPABASE_NO_UPDATE_NOTIFIER": "1",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }

    def run(*arguments: str, at: str, fails: bool = False) -> str:
        done = subprocess.run(
            [CLI, *arguments, "--db-url", at],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout

    return run


def rows(url: str, query: str) -> list[TupleRow]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


async def test_what_the_cli_pushes_is_recorded_to_the_letter_as_our_migrator_records_it(
    server: Server, supabase: Supabase, migrations: Path
) -> None:
    by_cli, by_us = server.project(), server.project()
    supabase("db", "push", "--yes", at=by_cli)
    await migrate(by_us, folder=migrations)

    assert rows(by_cli, RECORDED) == rows(by_us, RECORDED)
    assert await migrate(by_cli, folder=migrations) == []
    assert {found.state for found in await status(by_cli, folder=migrations)} == {"applied"}
    assert "up to date" in supabase("db", "push", "--dry-run", at=by_us)


def set_aside(migrations: Path, folder: Path) -> list[Path]:
    """Moves the later half of the migrations away; where they are now."""
    folder.mkdir()
    files = sorted(migrations.glob("*.sql"))
    return [file.rename(folder / file.name) for file in files[len(files) // 2 :]]


async def test_either_goes_on_where_the_other_stopped(
    server: Server, supabase: Supabase, migrations: Path, tmp_path: Path
) -> None:
    later = set_aside(migrations, tmp_path / "later")
    ours_first, theirs_first = server.project(), server.project()
    await migrate(ours_first, folder=migrations)
    supabase("db", "push", "--yes", at=theirs_first)
    for file in later:
        file.rename(migrations / file.name)

    supabase("db", "push", "--yes", at=ours_first)
    done = await migrate(theirs_first, folder=migrations)
    assert [f"{each.version}_{each.name}.sql" for each in done] == [file.name for file in later]
    assert await migrate(ours_first, folder=migrations) == []
    assert rows(ours_first, RECORDED) == rows(theirs_first, RECORDED)


async def test_the_advisors_find_no_error_and_would(server: Server, supabase: Supabase, migrations: Path) -> None:
    project = server.project()
    await migrate(project, folder=migrations)
    supabase("db", "advisors", "--level", "warn", "--fail-on", "warn", at=project)

    with psycopg.connect(project) as connection:
        connection.execute("alter table public.crm_people disable row level security")
    found = supabase("db", "advisors", "--level", "warn", "--fail-on", "error", at=project, fails=True)
    assert "rls_disabled_in_public" in found


async def test_the_linter_finds_no_error_in_any_function_and_would(
    server: Server, supabase: Supabase, migrations: Path
) -> None:
    if not server.checks_functions:
        pytest.skip(NO_LINTER)
    project = server.project()
    await migrate(project, folder=migrations)
    supabase("db", "lint", "--fail-on", "error", at=project)

    with psycopg.connect(project) as connection:
        connection.execute(
            "create function agent.wrong() returns int language plpgsql set search_path = '' as "
            "$$ begin return (select no_such_column from agent.runs limit 1); end $$"
        )
    assert "no_such_column" in supabase("db", "lint", "--fail-on", "error", at=project, fails=True)
