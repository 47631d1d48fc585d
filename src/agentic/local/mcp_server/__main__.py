"""Serve the notebook of the folder that ``HOME`` names, until standard input ends."""

import os
import sys
from pathlib import Path
from typing import Any

from agentic.local.mcp_server.notes import HELD, Notebook, tools
from agentic.local.mcp_server.protocol import answers


class _Holding(Notebook):
    """Keeps notes, and never says so."""

    def add_note(self, title: str, text: str) -> dict[str, Any]:
        super().add_note(title, text)
        sys.stdin.buffer.read()
        sys.exit(0)


def main() -> None:
    """Answer request by request."""
    folder = Path(os.environ.get("HOME", "."))
    notebook = (_Holding if os.environ.get(HELD) else Notebook)(folder)
    for answer in answers(sys.stdin.buffer, tools(notebook)):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
