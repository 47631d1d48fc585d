"""The folder of a test run."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

import memory_folder
from memory_folder import run_folder


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the machine's, with room enough."""
    monkeypatch.setattr(memory_folder, "_MEMORY", tmp_path)
    monkeypatch.setattr(memory_folder, "_ROOM_BYTES", 1)
    return tmp_path


def test_temporary_files_lie_there_for_as_long_as_the_run_lasts_and_none_is_left(memory: Path) -> None:
    before = tempfile.gettempdir(), os.environ.get("TMPDIR"), os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with run_folder() as folder:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            pass
        assert Path(file.name).parent == folder == Path(os.environ["TMPDIR"])
        assert folder.parent == memory
        assert folder.stat().st_mode & 0o777 == 0o711
        assert os.environ["PYTEST_DEBUG_TEMPROOT"] != str(folder)
    assert list(memory.iterdir()) == []
    assert before == (tempfile.gettempdir(), os.environ.get("TMPDIR"), os.environ.get("PYTEST_DEBUG_TEMPROOT"))


def test_without_room_in_memory_it_lies_where_temporary_files_usually_do(
    memory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    usual = tmp_path_factory.mktemp("usual")
    monkeypatch.setattr(memory_folder, "_ROOM_BYTES", 1 << 62)
    monkeypatch.setattr(tempfile, "tempdir", str(usual))
    with run_folder() as folder:
        assert folder.parent == usual


def test_what_a_killed_run_left_is_removed_and_what_another_run_uses_is_not(memory: Path) -> None:
    for name in ("agentic-tests-killed", "agentic-tests-goes-on", "somebody-elses"):
        (memory / name).mkdir()
        (memory / name / "run").touch()
    with open(memory / "agentic-tests-goes-on" / "run") as used:
        fcntl.flock(used, fcntl.LOCK_EX)
        with run_folder() as folder:
            assert {path.name for path in memory.iterdir()} == {folder.name, "agentic-tests-goes-on", "somebody-elses"}
