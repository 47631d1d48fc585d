"""``agentic …``: the command line. What each command prints and refuses stands in its own file; ``entry`` decides how it ends."""

from agentic.cli.entry import main

__all__ = ["main"]
