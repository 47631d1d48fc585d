"""Reading a person's answer from the terminal without holding up the event loop, so that Ctrl-C and the servers go on working."""

import asyncio
import os
import sys


def can_ask() -> bool:
    """Whether somebody sits there."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):
        return False


async def read_line() -> str | None:
    """The next line of standard input; ``None`` at its end."""
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not arrived.done():
            try:
                arrived.set_result(os.read(descriptor, 4096))
            except OSError:  # the terminal is gone
                arrived.set_result(b"")

    loop.add_reader(descriptor, read)
    try:
        line = await arrived
    finally:
        loop.remove_reader(descriptor)
    return line.decode("utf-8", "replace").strip() if line else None


def as_verdict(line: str) -> bool | None:
    """``True`` for yes, ``False`` for no, ``None`` for anything else."""
    match line.casefold():
        case "y" | "yes":
            return True
        case "n" | "no":
            return False
        case _:
            return None
