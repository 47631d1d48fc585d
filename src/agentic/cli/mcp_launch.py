"""From a command line as a person types it to a server that workers can start later, elsewhere, and without the person's environment."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.environment import DEFAULT_PATH


class NotLaunchable(ValueError):
    """What was typed is no command that could be started here; the message says why."""


def launch_of(text: str, *, home: Path, variables: Mapping[str, str] | None = None) -> StdioLaunch:
    """How a server is started: the program where it is found now, in this folder, with a HOME of its own.

    Args:
        text: program and arguments, quoted as in a shell; no shell reads them.
        home: the server's HOME.
        variables: plain settings.

    Raises:
        NotLaunchable: it cannot be read, or its program is not found.
    """
    try:
        program, *arguments = shlex.split(text)
    except ValueError as error:  # an open quote, or nothing at all
        reason = "it is empty" if not text.strip() else str(error).lower()
        raise NotLaunchable(f"the command cannot be read ({reason})") from None
    program, path = _found(program)
    return StdioLaunch(
        command=(program, *arguments), cwd=str(Path.cwd()), home=str(home), path=path, variables=variables or {}
    )


def settings(given: Sequence[str]) -> dict[str, str]:
    """Variables from ``NAME=VALUE``.

    Raises:
        NotLaunchable: one is not of that form, or stands there twice.
    """
    read = dict(each.partition("=")[::2] for each in given if "=" in each)
    if len(read) != len(given) or not all(read):
        raise NotLaunchable("a variable is NAME=VALUE, each name once")
    return read


def _found(program: str) -> tuple[str, str]:
    """The program to write down, and the path it is found on."""
    if os.sep in program or program.startswith("~"):
        absolute = os.path.abspath(Path(program).expanduser())  # noqa: PTH100 - a link, as of a virtual environment, stays one
        if not os.access(absolute, os.X_OK) or not Path(absolute).is_file():
            raise NotLaunchable(f"there is no program {absolute} that may be started")
        return absolute, DEFAULT_PATH
    found = shutil.which(program)
    if found is None:
        raise NotLaunchable(f"there is no program {program} on your PATH; install it, or name it with its folder")
    if shutil.which(program, path=DEFAULT_PATH) == found:
        return program, DEFAULT_PATH
    # what it starts in turn, as npx starts node, stands beside it
    return program, f"{Path(found).absolute().parent}{os.pathsep}{DEFAULT_PATH}"
