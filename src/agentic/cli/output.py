"""Where text goes: results to standard output, everything said to a person to standard error."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PIPE_WIDTH = 160
"""Columns where no terminal says how many; identifiers must not be broken for whoever greps them."""


class OutputClosed(Exception):
    """Whoever read our output has gone, as ``head`` does; there is nobody left to tell."""


def say(message: str) -> None:
    """A sentence to the person, on standard error."""
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def show(renderable: "RenderableType") -> None:
    """A result for people, on standard output."""
    with _unless_closed():
        stdout_console().print(renderable)


def show_json(value: object) -> None:
    """A result for programs: one JSON value."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    with _unless_closed():
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=not utf8) + "\n")
        sys.stdout.flush()


def show_line(line: str) -> None:
    """One line of a result that grows."""
    with _unless_closed():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def stdout_console() -> "Console":
    """A console that takes no text for markup and breaks nothing that a pipe could carry whole."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise OutputClosed

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Piped(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def use_lossless_streams() -> None:
    """Let a character that the terminal's encoding lacks be escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Point standard output at nothing, so that what is still buffered is not written to a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _unless_closed() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None
