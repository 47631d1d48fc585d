"""A folder that cannot serve is refused with the remedy and left as it was; nothing half made stays behind."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agentic.local.postgres import DataFolderError, EmbeddedPostgres, ServerFailedError
from agentic.local.postgres.binaries import Binaries, find_binaries, installed_binaries
from agentic.local.postgres.folder import find_home

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about what only root meets")
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def test_a_folder_with_other_files_is_left_untouched(root: Path) -> None:
    root.mkdir()
    (root / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(DataFolderError, match="did not put there; it was left untouched"):
        EmbeddedPostgres(root).start()
    assert [found.name for found in root.iterdir()] == ["thesis.txt"]
    shutil.rmtree(root)


def test_an_empty_folder_is_taken(root: Path) -> None:
    root.mkdir()
    with EmbeddedPostgres(root) as url:
        psycopg.connect(url).close()


def test_a_file_in_place_of_the_folder_is_refused(place: Path) -> None:
    (place / "postgres").write_text("", encoding="utf-8")
    with pytest.raises(DataFolderError, match="is a file"):
        EmbeddedPostgres(place / "postgres").start()


@not_as_root
def test_a_folder_that_cannot_be_written_is_refused(place: Path) -> None:
    place.chmod(0o500)
    with pytest.raises(DataFolderError, match="Permission denied"):
        EmbeddedPostgres(place / "postgres").start()
    place.chmod(0o700)


def test_a_place_where_no_folder_can_be_is_refused() -> None:
    with pytest.raises(DataFolderError, match=r"cannot be used: .* name another folder"):
        EmbeddedPostgres(Path("/proc/agentic/postgres")).start()


def test_a_damaged_marker_is_refused(root: Path) -> None:
    root.mkdir()
    (root / "agentic-postgres.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataFolderError, match="is damaged"):
        EmbeddedPostgres(root).start()
    shutil.rmtree(root)


@pytest.fixture
def failing_initdb(place: Path) -> Binaries:
    """Programs whose `initdb` makes some files and fails, as on a full disk."""
    folder = place / "programs"
    folder.mkdir()
    folder.chmod(0o755)
    for name in ("initdb", "postgres"):
        program = folder / name
        program.write_text(
            '#!/bin/sh\nfor a; do case $a in --pgdata=*) touch "${a#--pgdata=}/PG_VERSION";; esac; done\n'
            "echo 'could not write: No space left on device' >&2\nexit 1\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
    return Binaries(bin_dir=folder, version="18.0", source="a test")


def test_a_failed_initialisation_leaves_nothing_behind(place: Path, failing_initdb: Binaries) -> None:
    root = place / "project" / "postgres"
    with pytest.raises(ServerFailedError, match="No space left on device"):
        EmbeddedPostgres(root, binaries=failing_initdb).start()
    assert [found.name for found in place.iterdir()] == ["programs"]


def test_an_initialisation_that_was_killed_halfway_is_begun_anew(root: Path) -> None:
    with EmbeddedPostgres(root):
        pass
    (root / "data").rename(root / "data.new")
    (root / "data.new" / "PG_VERSION").unlink()
    with EmbeddedPostgres(root) as url:
        psycopg.connect(url).close()
    assert not (root / "data.new").exists()


def test_data_of_another_version_is_refused_with_the_way_to_convert_it(root: Path) -> None:
    with EmbeddedPostgres(root):
        pass
    newest = find_binaries()
    version = root / "data" / "PG_VERSION"
    version.write_text("14\n", encoding="utf-8")
    with pytest.raises(DataFolderError, match=r"written by Postgres 14.*pg_dump.*pg_upgrade"):
        EmbeddedPostgres(root).start()
    version.write_text(f"{newest.major}\n", encoding="utf-8")
    with EmbeddedPostgres(root) as url:
        psycopg.connect(url).close()


@pytest.mark.parametrize("binaries", list(installed_binaries()), ids=lambda found: f"{found.source}-{found.version}")
def test_every_installed_version_serves_and_its_data_finds_it_again(root: Path, binaries: Binaries) -> None:
    with EmbeddedPostgres(root, binaries=binaries) as url, psycopg.connect(url) as connection:
        assert connection.info.server_version // 10000 == binaries.major
    with EmbeddedPostgres(root) as url, psycopg.connect(url) as connection:
        assert connection.info.server_version // 10000 == binaries.major
        assert connection.execute("select upper('ß ä'), current_setting('server_encoding')").fetchone() == (
            "ß Ä",
            "UTF8",
        )


def test_a_long_path_gets_a_short_socket_that_is_removed_when_the_server_stops(place: Path) -> None:
    root = place / ("x" * 120) / "postgres"
    server = EmbeddedPostgres(root)
    url = server.start()
    socket_dir = Path(str(psycopg.conninfo.conninfo_to_dict(url)["host"]))
    assert len(str(socket_dir)) < 85
    assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    server.stop()
    assert not socket_dir.exists()
    with psycopg.connect(server.start()) as connection:
        again = Path(str(connection.info.host))
        assert connection.execute("select 1").fetchone() == (1,)
    server.destroy()
    assert not again.exists()


def test_a_lost_password_is_said_so(root: Path) -> None:
    with EmbeddedPostgres(root):
        pass
    kept = (root / "password").read_text(encoding="utf-8")
    (root / "password").unlink()
    with pytest.raises(DataFolderError, match=r"password is missing"):
        EmbeddedPostgres(root).start()
    (root / "password").write_text("another", encoding="utf-8")
    with pytest.raises(DataFolderError, match=r"refuses the password"):
        EmbeddedPostgres(root).start()
    (root / "password").write_text(kept, encoding="utf-8")
    with EmbeddedPostgres(root) as url:
        psycopg.connect(url).close()


@pytest.fixture
def closed_place() -> Iterator[Path]:
    """A folder that nobody but its owner may enter, as the home of root is."""
    folder = Path(tempfile.mkdtemp(prefix="agentic-test-closed-"))
    yield folder
    shutil.rmtree(folder)


@as_root
def test_a_project_that_only_root_may_enter_keeps_its_mode_and_its_data_lives_elsewhere(closed_place: Path) -> None:
    server = EmbeddedPostgres(closed_place / "postgres")
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert stat.S_IMODE(closed_place.stat().st_mode) == 0o700
    home = find_home(closed_place / "postgres")
    assert home is not None
    assert not home.path.is_relative_to(closed_place)
    assert server.stop()
    server.start()
    server.destroy()
    assert not home.path.exists()


@as_root
def test_programs_that_only_root_may_enter_are_copied_with_their_libraries(root: Path, closed_place: Path) -> None:
    wheel = next(found for found in installed_binaries() if found.package_dir)
    assert wheel.package_dir is not None
    for folder in (wheel.package_dir, wheel.package_dir.with_name(f"{wheel.package_dir.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, closed_place / folder.name, symlinks=True)
    hidden = Binaries(
        bin_dir=closed_place / wheel.bin_dir.relative_to(wheel.package_dir.parent),
        version=wheel.version,
        source="a test",
        package_dir=closed_place / wheel.package_dir.name,
    )
    with EmbeddedPostgres(root, binaries=hidden) as url, psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert stat.S_IMODE(closed_place.stat().st_mode) == 0o700
