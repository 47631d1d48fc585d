"""Where a test run keeps its files: in memory, where this machine has room for them there, and nothing of it is left afterwards.

Thousands of databases are made and dropped; on a disk that is most of what a run costs. No test loses by it: who kills a process
leaves what it wrote to the kernel, on either.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 2 << 30
"""Several times what a run has there at once."""
_PREFIX = "agentic-tests-"
_LOCK = "run"


@contextmanager
def run_folder() -> Iterator[Path]:
    """A folder for one test run that every account may pass through; for as long, temporary files of this process and of those
    it starts lie there. pytest's own stay where they are, to be looked at.

    Folders of runs that were killed are removed first.
    """
    kept = {name: os.environ.get(name) for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT")}
    usual = Path(tempfile.gettempdir())
    parent = _MEMORY if _has_room(_MEMORY) else usual
    _remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    folder.chmod(0o711)  # as root, the account that runs Postgres has to pass
    draft = folder / f"{_LOCK}.new"
    with open(draft, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(folder / _LOCK)  # nobody finds it unlocked
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(usual))
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = None
            for name, value in kept.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            shutil.rmtree(folder, ignore_errors=True)


def _has_room(memory: Path) -> bool:
    """As root the programs of Postgres may be copied beside its data, and run from there."""
    if not (memory.is_dir() and os.access(memory, os.W_OK | os.X_OK)):
        return False
    found = os.statvfs(memory)
    return found.f_bavail * found.f_frsize >= _ROOM_BYTES and not found.f_flag & getattr(os, "ST_NOEXEC", 0)


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = open(folder / _LOCK)  # noqa: SIM115 - closed below
        except OSError:  # of somebody else, or just being made or removed
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # it goes on
                continue
            shutil.rmtree(folder, ignore_errors=True)
