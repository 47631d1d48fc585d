"""Lanes: which line a run stands in at the function server."""

from enum import StrEnum


class Lane(StrEnum):
    """The lines. Each organization has its own of both."""

    INTERACTIVE = "interactive"
    """A person waits for it; goes first."""
    BATCH = "batch"
