"""How a command ends: an exit code, and for people one clear sentence on standard error; a traceback only with ``--debug``."""

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

from agentic.cli.commands import app
from agentic.cli.options import Settings
from agentic.cli.output import OutputClosed, discard_output, say, use_lossless_streams
from agentic.contract.errors import AgenticError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""
_UsageError = typer.BadParameter.__mro__[1]  # the base of every mistake in the arguments; typer exports no name for it


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit.

    Args:
        arguments: what follows the program's name; ``None`` takes the process's own.
    """
    use_lossless_streams()
    settings = Settings()
    code = _run(sys.argv[1:] if arguments is None else list(arguments), settings)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    sys.exit(code)


def _run(arguments: list[str], settings: Settings) -> int:
    try:
        ended = app(arguments, prog_name="agentic", obj=settings, standalone_mode=False)
    except OutputClosed:
        discard_output()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except AgenticError as error:
        return _failed(str(error), settings)
    except Exception as error:  # noqa: BLE001 - the last line of defence between a defect and a person
        if isinstance(error, _UsageError):
            return _misused(error, arguments)
        text = " ".join(str(error).split()) or "no more is known"
        return _failed(
            f"unexpected {type(error).__name__}: {text} (run 'agentic --debug …' for the traceback)", settings
        )
    return ended if isinstance(ended, int) else 0


def _failed(message: str, settings: Settings) -> int:
    if settings.debug:
        say(traceback.format_exc().rstrip())
    say(f"error: {message}")
    return FAILED


def _misused(error: Exception, arguments: Sequence[str]) -> int:
    context = getattr(error, "ctx", None)
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)  # the same in every typer
    if type(error).__name__ == "NoArgsIsHelpError":  # the help text, asked for by saying nothing
        say(message.rstrip())
        return MISUSED
    sentence = f"{message.rstrip('.')}; '{context.command_path if context else 'agentic'} --help' shows what there is"
    say(f"error: {sentence}")
    if "demo" in arguments and "--json" in arguments:  # whose last line is JSON however it ends
        from agentic.local.demo.summary import error_line

        sys.stdout.write(error_line(sentence, None) + "\n")
    return MISUSED
