"""Makes `.venv` hold what a lock file names and this checkout itself; does nothing when it already does.

Called by the Makefile as `environment.py runtime|dev`. It is written for any Python 3.7, so that a Python that is too old
is told which one is needed. An install that was cut off leaves its mark, and the next call starts from nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator  # noqa: UP035 - an older Python has to get as far as the version check

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = VENV / "agentic-environment.json"
UNFINISHED = VENV / "agentic-environment.unfinished"
LEAST = (3, 11)
# the dev lock contains the runtime lock, pin for pin, so an environment for tests serves the demo as well
CONTENTS = {"runtime": ["runtime"], "dev": ["runtime", "dev"]}


def main() -> None:
    """Brings the environment up to the lock named on the command line."""
    parser = argparse.ArgumentParser(description="Makes .venv hold what a lock file names and this checkout itself.")
    parser.add_argument("lock", choices=sorted(CONTENTS))
    lock = parser.parse_args().lock
    if sys.version_info < LEAST:
        sys.exit(
            f"agentic needs Python {version(LEAST)} or later, and {sys.executable} is Python {version(sys.version_info[:3])}. "
            "Name a newer one, for example: make PYTHON=python3.12"
        )
    with one_at_a_time():
        install(lock)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Holds off a second `make` in the same checkout; the kernel gives the lock back however this process ends."""
    folder = os.open(ROOT / "requirements", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def install(lock: str) -> None:
    """Installs what is missing, in an order in which a cut-off can be seen."""
    pins = {name: digest(ROOT / "requirements" / f"{name}.txt") for name in CONTENTS[lock]}
    package = {"package": digest(ROOT / "pyproject.toml"), "root": str(ROOT)}
    state = usable_state()
    if {**state, **pins, **package} == state:
        return
    VENV.mkdir(exist_ok=True)
    UNFINISHED.touch()
    if not PYTHON.exists():
        create()
    if {**state, **pins} != state:
        tell(f"installing requirements/{lock}.txt into .venv, a minute or two")
        pip("--require-hashes", "--requirement", str(ROOT / "requirements" / f"{lock}.txt"))
        state = {}  # a lock that was installed before may now be overwritten in part
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STATE.write_text(json.dumps({**state, **pins, **package}, indent=2), encoding="utf-8")
    UNFINISHED.unlink()


def usable_state() -> dict[str, str]:
    """Tells what `.venv` holds; nothing is known of one made by hand. One that cannot be trusted is removed first."""
    state: dict[str, str] = {}
    if STATE.exists() and not UNFINISHED.exists():
        state = json.loads(STATE.read_text(encoding="utf-8"))
    if UNFINISHED.exists():
        reason = "its install was cut off"
    elif state.get("root", str(ROOT)) != str(ROOT):
        reason = "it was made in another folder"  # console scripts carry the path of their environment
    elif os.path.lexists(VENV) and not PYTHON.exists():
        reason = "its Python is gone"  # the link in bin/ leads nowhere
    else:
        return state
    tell(f"making .venv anew: {reason}")
    shutil.rmtree(VENV)
    return {}


def create() -> None:
    """Makes an empty environment with pip in it."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            UNFINISHED.unlink()
            VENV.rmdir()
            sys.exit(
                f"{sys.executable} cannot make virtual environments: its module {module} is missing. On Debian and Ubuntu "
                f"install the package python{version(sys.version_info[:2])}-venv, elsewhere a complete Python, "
                "or name another one, for example: make PYTHON=python3.12"
            )
    tell(f"making .venv with Python {version(sys.version_info[:3])}")
    run(
        [sys.executable, "-m", "venv", str(VENV)],
        "A virtual environment could not be made in .venv; see the message above.",
    )


def pip(*arguments: str) -> None:
    """Runs the environment's own pip, which says something only when it fails."""
    command = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", *arguments]
    run(command, "The packages could not be installed; see the message above, then run the same command again.")


def run(command: list[str], failure: str) -> None:
    """Runs a command to its end, or ends with one sentence about it."""
    # as root pip warns about the system's packages, which a virtual environment leaves alone; and an outer setting
    # such as PIP_USER or PIP_TARGET would install past the environment
    settings = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONPATH")
    }
    settings["PIP_ROOT_USER_ACTION"] = "ignore"
    if subprocess.run(command, env=settings, check=False).returncode != 0:
        sys.exit(failure)


def digest(path: Path) -> str:
    """Gives the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def version(parts: tuple[int, ...]) -> str:
    """Writes a version the usual way."""
    return ".".join(str(part) for part in parts)


def tell(line: str) -> None:
    """Says what takes the time, on standard error: the output belongs to the command that follows."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
