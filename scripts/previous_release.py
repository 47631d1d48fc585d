"""Runs the tests of the release before on the schema of now: a deploy migrates first, and the old workers go on for a while.

`supabase/RELEASED` names the newest migration of that release; its code is the last commit before a later one was added. Called by
the Makefile as `previous_release.py`, with the dev environment's Python. Fails too when a released migration was edited. A clone
without that much history proves nothing, and says so.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIGRATIONS = "supabase/migrations"
TESTS = (
    "tests/integration/core/test_calls.py",
    "tests/integration/core/test_metered_calls.py",
    "tests/integration/core/test_races.py",
    "tests/integration/core/test_retention.py",
    "tests/integration/core/test_run_life.py",
    "tests/integration/core/test_runs_and_approvals.py",
    "tests/integration/jobs",
    "tests/integration/connections",
)


def main() -> None:
    """Says what is proved, or why nothing has to be."""
    released = (ROOT / "supabase" / "RELEASED").read_text().strip()
    later = [path for path in sorted((ROOT / MIGRATIONS).glob("*.sql")) if path.name.split("_")[0] > released]
    if not later:
        sys.stdout.write(f"no migration is later than {released}; the release before runs on this schema\n")
        return
    commit = last_without(later)
    if commit is None:
        sys.stdout.write(
            "left out: the history of this clone does not reach back to the release before; fetch all of it\n"
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder)
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as archive:
            archive.extractall(old, filter="data")
        refuse_edits(old)
        for path in later:
            shutil.copy(path, old / MIGRATIONS)
        sys.stdout.write(f"the code of {commit[:10]} on {len(later)} later migrations\n")
        sys.stdout.flush()
        sys.exit(tests_of(old))


def last_without(later: list[Path]) -> str | None:
    """The last commit that has none of these files; ``None`` when the history of this clone does not reach back to it."""
    names = [str(path.relative_to(ROOT)) for path in later]
    added = git("log", "--reverse", "--diff-filter=A", "--format=%H", "--", *names).decode().split()
    if not added:  # not committed yet
        return git("rev-parse", "HEAD").decode().strip()
    try:
        return git("rev-parse", "--verify", f"{added[0]}^").decode().strip()
    except subprocess.CalledProcessError:
        return None


def refuse_edits(old: Path) -> None:
    """Fails when a migration of the release reads otherwise now: a database that has it would never get the change."""
    edited = [
        path.name
        for path in sorted((old / MIGRATIONS).glob("*.sql"))
        if not (ROOT / MIGRATIONS / path.name).is_file()
        or (ROOT / MIGRATIONS / path.name).read_bytes() != path.read_bytes()
    ]
    if edited:
        sys.exit(f"released migrations were edited or removed: {', '.join(edited)}; write a new one instead")


def tests_of(old: Path) -> int:
    """Runs the old tests with the old code; their exit status."""
    environment = {**os.environ, "PYTHONPATH": str(old / "src")}
    where = [sys.executable, "-c", "import agentic; print(agentic.__file__)"]
    found = subprocess.run(where, cwd=old, env=environment, check=True, capture_output=True, text=True).stdout
    if not found.startswith(str(old)):
        sys.exit(f"the old code is not what would be tested, but {found.strip()}")
    command = [sys.executable, "-m", "pytest", "-n", os.environ.get("WORKERS", "2"), "-q", "-p", "no:cacheprovider"]
    return subprocess.run([*command, *TESTS], cwd=old, env=environment, check=False).returncode


def git(*arguments: str) -> bytes:
    """What git answers in this checkout."""
    return subprocess.run(
        [shutil.which("git") or "git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout


if __name__ == "__main__":
    main()
