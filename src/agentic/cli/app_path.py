"""The app a command is told with ``--app``, where a person stands."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agentic.bootstrap import App
from agentic.local.worker.loading import loaded


def app_at(path: str) -> AbstractAsyncContextManager[App]:
    """The app for the length of a block; modules of the current folder count.

    Args:
        path: ``module:attribute``, as ``loading.loaded`` takes it.

    Raises:
        ProgramFault: the path leads to something else.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script has its own folder there instead
    return loaded(path)
