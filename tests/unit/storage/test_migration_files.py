"""Migration files are read in order, and a folder that cannot be trusted is refused."""

from pathlib import Path

import pytest

from agentic.storage.migration_errors import MigrationFilesError
from agentic.storage.migration_files import default_folder, read_migrations


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name.lstrip('_')}.sql").write_text(text, encoding="utf-8")
    return folder


def test_version_and_name_part_at_the_first_underscore(tmp_path: Path) -> None:
    write(tmp_path, _20_b_c="select 2; select 3", _10_a="select 1")
    found = read_migrations(tmp_path)
    assert [(migration.version, migration.name) for migration in found] == [("10", "a"), ("20", "b_c")]
    assert found[1].statements == ("select 2", "select 3")


@pytest.mark.parametrize("statement", ["begin", "COMMIT", "-- x\nrollback", "start transaction", "end", "abort"])
def test_a_file_may_not_end_its_own_transaction(tmp_path: Path, statement: str) -> None:
    with pytest.raises(MigrationFilesError, match="statement 2 is"):
        read_migrations(write(tmp_path, _1_a=f"select 1; {statement}; select 2"))


def test_a_folder_without_a_migration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MigrationFilesError, match="there is no migration"):
        read_migrations(tmp_path)


def test_a_misnamed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MigrationFilesError, match=r"later\.sql is not named"):
        read_migrations(write(tmp_path, later="select 1"))


def test_two_files_of_one_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MigrationFilesError, match=r"1_a\.sql and 1_b\.sql have the same version"):
        read_migrations(write(tmp_path, _1_a="select 1", _1_b="select 2"))


def test_text_that_is_not_sql_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(MigrationFilesError, match=r"1_a\.sql cannot be read as SQL: the quote that begins in line 2"):
        read_migrations(write(tmp_path, _1_a="select 1;\nselect 'x"))


def test_the_migrations_of_this_build_are_found_and_well_formed() -> None:
    assert read_migrations(default_folder())
