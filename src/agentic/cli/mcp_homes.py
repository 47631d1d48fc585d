"""The HOMEs of stdio servers in this project's folder: taken away with the last server of their name, and never under a process.

A folder is held by the guard of each process that lives in it (``services.mcp.child``). A removal that is cut off leaves a part of it,
which the next one takes.
"""

import fcntl
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Final

from agentic.services.mcp.config import StdioLaunch

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Left(StrEnum):
    """Why a HOME stays; a closed set."""

    OTHERS = "others"
    IN_USE = "in_use"
    SHARED = "shared"
    LINKED = "linked"
    NO_LOCKS = "no_locks"
    NOT_OURS = "not_ours"


WORDS: Final = {
    Left.OTHERS: "another organization has a server of this name, which lives in it",
    Left.IN_USE: "a process of the server still lives in it; retire it again when that has ended",
    Left.SHARED: "another entry of the file of servers has its home there",
    Left.LINKED: "it is a link, or no folder, and what it leads to may be somebody else's; remove it yourself",
    Left.NO_LOCKS: "its file system has no locks by which a process of the server would be seen; see that none lives, then remove it",
    Left.NOT_OURS: "something in it may not be removed by this account; give it the rights, then retire the server again",
}
"""By why a HOME stays: what a person is told of it."""


def remove_home(home: Path, *, server_id: str, launches: Mapping[str, StdioLaunch]) -> Left | None:
    """Remove the HOME of a server that nobody has any more; ``None`` when it is gone, or was never there.

    No link is followed, neither to the folder nor out of it.

    Args:
        home: as ``local.home.Home.server_home`` names it.
        launches: the deployment's stdio servers, of which another one may live there.
    """
    if not os.path.lexists(home):
        return None
    others = (Path(each.home) for name, each in launches.items() if name != server_id and each.home is not None)
    if any(home == other or home in other.parents for other in others):
        return Left.SHARED
    with ExitStack() as stack:
        try:
            parent = os.open(home.parent, _FOLDER)
            stack.callback(os.close, parent)
            folder = os.open(home.name, _FOLDER, dir_fd=parent)
            stack.callback(os.close, folder)
        except OSError:
            return Left.LINKED
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Left.IN_USE
        except OSError:
            return Left.NO_LOCKS
        try:
            shutil.rmtree(home.name, dir_fd=parent)
        except OSError:
            return Left.NOT_OURS
    return None
