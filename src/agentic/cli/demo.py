"""``agentic demo``: its options. The story itself is ``agentic.local.demo``'s."""

from pathlib import Path
from typing import Annotated

import typer

from agentic.cli.options import settings_of


def demo(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Answer the approval with yes instead of asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object as the last line.")] = False,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the worker right after the provider took the email.")
    ] = False,
    no_vendor_key: Annotated[bool, typer.Option("--no-vendor-key", help="Send without an idempotency key.")] = False,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own CRM export; by default the one that ships with the package."),
    ] = None,
) -> None:
    """Show a governed run from end to end on this machine: read a CRM, write to it, ask you, send one email."""
    from agentic.local.demo.command import demo as tell
    from agentic.local.demo.options import DemoOptions
    from agentic.local.home import DEFAULT_FOLDER

    folder = settings_of(context).folder
    tell(
        DemoOptions(
            yes=yes,
            json=as_json,
            crash=crash,
            vendor_key=not no_vendor_key,
            csv=csv,
            folder=DEFAULT_FOLDER if folder is None else folder,
        )
    )
