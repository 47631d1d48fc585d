"""A folder for an instance of the embedded Postgres."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic.local.postgres import EmbeddedPostgres


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder that the account which runs Postgres may enter; pytest's own are closed to it, as root."""
    folder = Path(tempfile.mkdtemp(prefix="agentic-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def root(place: Path) -> Iterator[Path]:
    """Where an instance may be made; deleted afterwards, whatever became of it."""
    root = place / "postgres"
    yield root
    if root.exists():
        EmbeddedPostgres(root).destroy()
