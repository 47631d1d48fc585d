"""How a fault is told to operators: class and place. Its text stays out, for an error may quote a credential (B2)."""

import traceback

MAX_FRAMES = 20
"""The innermost frames are told."""


def where(fault: BaseException) -> str:
    """The class of an exception and the places it came through; neither its text nor a line of source."""
    frames = traceback.extract_tb(fault.__traceback__, limit=-MAX_FRAMES)
    return "\n".join(
        [type(fault).__name__, *(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]
    )
