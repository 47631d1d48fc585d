"""Options that several commands share, and what the global ones are kept in. Imports nothing that takes time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer


@dataclass(kw_only=True, slots=True)
class Settings:
    """The global options of one invocation; filled in by the root command."""

    folder: Path | None = None
    """``None`` is the default folder."""
    debug: bool = False


def settings_of(context: typer.Context) -> Settings:
    """The global options a command runs under."""
    settings = context.find_object(Settings)
    assert settings is not None
    return settings


Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output, and nothing else there.")]
Organization = Annotated[
    UUID | None,
    typer.Option(
        "--organization",
        envvar="AGENTIC_ORGANIZATION",
        metavar="UUID",
        help="Whose rows; by default the organization of the folder's identity.",
    ),
]
Person = Annotated[
    UUID | None, typer.Option("--as", metavar="USER", help="Who acts; by default the person of the folder's identity.")
]
MAX_LIMIT = 1000
Limit = Annotated[int, typer.Option("--limit", min=1, max=MAX_LIMIT, help="How many at most.")]
Comment = Annotated[str | None, typer.Option("--comment", help="Reaches the model as your words.")]
Evidence = Annotated[str, typer.Option("--evidence", help="What you saw, and where; kept in the run's record.")]
