"""The command line as this person would type it again: for hints that print a command to copy."""

import shlex
import shutil
import sys
from pathlib import Path

from agentic.local.home import DEFAULT_FOLDER

NAME = "agentic"


def command(folder: Path | None = None) -> str:
    """The program as it was called, with the folder where it is not the usual one.

    Args:
        folder: what ``--folder`` named; ``None`` is the usual one.
    """
    program = shlex.quote(_program(sys.argv[0] if sys.argv else NAME))
    if folder is None or folder == DEFAULT_FOLDER:
        return program
    return f"{program} --folder {shlex.quote(str(folder))}"


def _program(called: str) -> str:
    """Its name alone where a shell finds it by that; also when another program has embedded us."""
    if Path(called).name != NAME:
        return NAME
    found = shutil.which(NAME)
    if found is not None and Path(found).absolute() == Path(called).absolute():
        return NAME
    return called
