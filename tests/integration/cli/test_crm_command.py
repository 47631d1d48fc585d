"""Contacts from a file, by the command line: entered, told, and entered once whatever happens to the process."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Seed, Shell

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own
PATIENCE_S = 40


def _file(folder: Path, rows: list[str]) -> str:
    path = folder / "contacts.csv"
    path.write_text("\n".join(["name,email,company,city", *rows]) + "\n")
    return str(path)


def _people(database: str, organization_id: object) -> list[Any]:
    with psycopg.connect(database) as connection:
        return connection.execute(
            "select name, email, city from public.crm_people where organization_id = %s and deleted_at is null order by email",
            (organization_id,),
        ).fetchall()


def test_a_file_is_entered_and_told_and_changes_nothing_the_second_time(
    seed: "Seed", shell: "Shell", database: str, tmp_path: Path
) -> None:
    file = _file(tmp_path, ["Per Hansen,PER@fjord.example,Fjord AS,Bergen", ",,Fjord AS,", "Ida,n/a,Fjord AS,Oslo"])
    dry = shell("crm", "import", file, "--dry-run")
    assert (dry.code, dry.out) == (0, "")
    assert "left out, line 3: neither a name nor an email" in dry.err
    assert "nothing was written" in dry.err
    assert _people(database, seed.organization) == []

    first = shell("crm", "import", file)
    assert (first.code, first.out) == (0, "")
    assert "contacts.csv: 3 rows, 2 people, 1 companies (1 without email, 1 left out, 1 cells left empty)" in first.err
    assert "left empty, line 4: email: 'n/a' is no address" in first.err
    assert "people: 2 new, 0 changed, 0 as they were" in first.err
    entered = [("Per Hansen", "per@fjord.example", "Bergen"), ("Ida", None, "Oslo")]
    assert _people(database, seed.organization) == entered

    second = shell("crm", "import", file, "--json")
    assert (second.code, second.err) == (0, "")
    assert second.value["entered"] == {
        "people": {"created": 0, "changed": 0, "unchanged": 2},
        "companies": {"created": 0, "changed": 0, "unchanged": 1},
    }
    assert second.value["left_out"] == [{"line": 3, "why": "neither a name nor an email"}]
    assert second.value["left_empty"] == [{"line": 4, "why": "email: 'n/a' is no address"}]
    assert _people(database, seed.organization) == entered


@pytest.mark.guarantee("J3")
def test_an_import_that_is_killed_and_run_again_enters_everybody_once(
    seed: "Seed", shell: "Shell", database: str, tmp_path: Path
) -> None:
    rows = [f"Person {number:04},p{number:04}@c{number % 7}.example,Company {number % 7},Oslo" for number in range(400)]
    file = _file(tmp_path, rows)
    importing = shell.start("crm", "import", file)
    end = time.monotonic() + PATIENCE_S
    while not _people(database, seed.organization) and time.monotonic() < end:
        time.sleep(0.01)
    importing.kill()
    importing.communicate(timeout=PATIENCE_S)
    left = len(_people(database, seed.organization))
    assert 0 < left < len(rows)

    again = shell("crm", "import", file, "--json")
    assert again.code == 0, again.err
    counted = again.value["entered"]["people"]
    assert counted["created"] + counted["changed"] + counted["unchanged"] == len(rows)
    assert counted["unchanged"] >= left - 1
    expected = [(f"Person {number:04}", f"p{number:04}@c{number % 7}.example", "Oslo") for number in range(400)]
    assert _people(database, seed.organization) == sorted(expected, key=lambda row: row[1])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("name,company\nPer,A\n", "lacks required columns: email"),
        ('name,email,company\n"Per,,A\n', "line 2"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence_and_enters_nobody(
    seed: "Seed", shell: "Shell", database: str, tmp_path: Path, content: str, says: str
) -> None:
    path = tmp_path / "contacts.csv"
    path.write_text(content)
    ended = shell("crm", "import", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
    assert _people(database, seed.organization) == []
