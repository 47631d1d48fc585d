"""Commands where the database is missing, empty, away, or the embedded one."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from agentic.local.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the account which runs Postgres may enter; pytest's own is closed to it."""
    with tempfile.TemporaryDirectory(prefix="agentic-cli-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder
        EmbeddedPostgres(folder / "home" / "postgres").destroy()


def test_without_any_database_a_command_says_how_to_get_one_and_makes_nothing(shell: "Shell") -> None:
    ended = shell("runs", "list", "--json")
    assert (ended.code, ended.out) == (1, "")
    assert "agentic db migrate" in ended.err
    assert list(shell.folder.iterdir()) == []


def test_a_database_without_our_tables_is_named_with_the_remedy(shell: "Shell", empty_database: str) -> None:
    for arguments in (["runs", "list"], ["approvals", "list", "--json"], ["tools", "list"]):
        ended = shell(*arguments, DATABASE_URL=empty_database)
        assert (ended.code, ended.out) == (1, "")
        assert "run 'agentic db migrate'" in ended.err
        assert len(ended.err.splitlines()) == 1


def test_a_plain_database_is_bootstrapped_and_migrated(shell: "Shell", empty_database: str) -> None:
    shell.variables["DATABASE_URL"] = empty_database
    assert {row["state"] for row in shell("db", "status", "--json").value} == {"pending"}
    assert shell("db", "bootstrap").code == 0
    applied = shell("db", "migrate", "--json")
    assert applied.code == 0, applied.err
    assert applied.value
    assert shell("db", "migrate", "--json").value == []
    assert {row["state"] for row in shell("db", "status", "--json").value} == {"applied"}
    assert shell("runs", "list", "--json").value == []


def test_commands_of_a_release_go_on_when_the_next_one_has_migrated_and_stop_where_their_own_files_differ(
    shell: "Shell", database: str
) -> None:
    shell.variables["DATABASE_URL"] = database
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into supabase_migrations.schema_migrations (version, name, statements) values ('20990101000000', 'later', '{}')"
        )
        for arguments in (["runs", "list"], ["jobs", "list"], ["usage"]):
            ended = shell(*arguments, "--json")
            assert (ended.code, ended.err) == (0, "")
        connection.execute(
            "update supabase_migrations.schema_migrations set statements = '{select 1}' where version <> '20990101000000'"
        )
    refused = shell("runs", "list", "--json")
    assert (refused.code, refused.out) == (1, "")
    assert "'agentic db status' says where they differ" in refused.err


@pytest.mark.guarantee("B2")
def test_a_database_that_is_away_is_one_sentence_without_the_password(shell: "Shell") -> None:
    away = "postgresql://me:hunter2@127.0.0.1:1/nowhere"
    for arguments in (["runs", "list"], ["db", "migrate"], ["db", "bootstrap"], ["db", "status"]):
        ended = shell(*arguments, DATABASE_URL=away)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith("error: the database nowhere at 127.0.0.1:1 cannot be reached")
        assert "hunter2" not in ended.err
        assert "Traceback" not in ended.err
    assert "Traceback" in shell("--debug", "db", "status", DATABASE_URL=away).err


def test_the_embedded_database_is_started_for_each_command_and_keeps_what_it_holds(shell: "Shell", place: Path) -> None:
    folder = ["--folder", str(place / "home")]
    assert shell(*folder, "db", "migrate").code == 0
    listed = shell(*folder, "runs", "list")
    assert (listed.code, "has no runs" in listed.err) == (0, True)
    assert shell(*folder, "db", "migrate", "--json").value == []
