"""Whether a process is to die now: decided by whoever tells the story, asked at every place."""

from pathlib import Path
from typing import Protocol
from uuid import UUID


class Armed(Protocol):
    """Asked with the run that has come to the place, or ``None`` where that is not known."""

    def __call__(self, run_id: UUID | None) -> bool:
        """Whether to die there."""
        ...


class ArmedByFile:
    """Armed while a file names the run; several processes share it.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def arm(self, run_id: UUID) -> None:
        """Whoever leads this run dies at its point from now on."""
        draft = self._path.with_suffix(".draft")
        draft.write_text(str(run_id))
        draft.replace(self._path)

    def disarm(self) -> None:
        """Nobody dies any more."""
        self._path.unlink(missing_ok=True)

    def __call__(self, run_id: UUID | None) -> bool:
        """Whether the file names this run, or any run when it is not known."""
        try:
            named = self._path.read_text()
        except FileNotFoundError:
            return False
        return run_id is None or named == str(run_id)
