"""What every test in here is held to, and what a server is given to work on."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.mcp.conftest import nothing_left  # noqa: F401 - a fixture of every test in here
from tests.integration.mcp.scripted_http import Scripted, plain, scripted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a note, which is a git repository with one commit."""
    made = tmp_path / "notes"
    made.mkdir()
    (made / "note.txt").write_text("Ida likes tea.\n", encoding="utf-8")
    git = ("git", "-C", str(made), "-c", "user.name=Ida Berg", "-c", "user.email=ida@nordlys.example")
    for command in (("init", "-q"), ("add", "note.txt"), ("commit", "-q", "-m", "The first note")):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return made


@pytest_asyncio.fixture
async def page() -> AsyncIterator[Scripted]:
    """A page on loopback."""
    body = plain("200 OK", b"A page of our own.", "Content-Type: text/plain")
    async with scripted(lambda self, asked: body) as serving:
        yield serving
