"""How a fault is told to operators: class and place. Its text stays out, for an error may quote a credential (B2)."""

import traceback


def where(fault: BaseException) -> str:
    """The class of an exception and the lines it came through, without its text."""
    frames = "".join(traceback.format_tb(fault.__traceback__))
    return f"{type(fault).__name__}\n{frames}" if frames else type(fault).__name__
