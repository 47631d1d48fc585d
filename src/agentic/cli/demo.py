"""``agentic demo``: its options, and the run's tree at the end. The story itself is ``agentic.local.demo``'s."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentic.cli.options import settings_of
from agentic.local.crash_points import SENTENCES, CrashPoint

CRASH_POINTS = "\b\nPoints of --crash-at, in the order a run comes to them:\n" + "\n".join(
    f"  {point:<22} {sentence}" for point, sentence in SENTENCES.items()
)


def demo(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Answer the approval with yes instead of asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object as the last line.")] = False,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the worker right after the email, or the note of --mcp, was taken.")
    ] = False,
    crash_at: Annotated[
        str | None,
        typer.Option(
            metavar="POINT", help="Kill the process that has the run in hand at a point; they are listed below."
        ),
    ] = None,
    no_vendor_key: Annotated[bool, typer.Option("--no-vendor-key", help="Send without an idempotency key.")] = False,
    enrich: Annotated[
        bool,
        typer.Option(
            "--enrich",
            help="Show work that a provider finishes later: submit, park, signed callback, settle once, go on. Sends no email.",
        ),
    ] = False,
    mcp: Annotated[
        bool,
        typer.Option(
            "--mcp",
            help="Show a tool server of somebody else: added, looked at, approved, read, written once, never obeyed. Sends no email.",
        ),
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own CRM export; by default the one that ships with the package."),
    ] = None,
) -> None:
    """Show a governed run from end to end on this machine: read a CRM, write to it, ask you, send one email."""
    from rich.console import Console

    from agentic.cli.output import stdout_console
    from agentic.cli.run_tree import run_tree
    from agentic.local.demo.command import demo as tell
    from agentic.local.demo.options import DemoOptions
    from agentic.local.home import DEFAULT_FOLDER
    from agentic.local.program import command

    def show_tree(tree: Mapping[str, Any]) -> None:
        console = Console(stderr=True, markup=False, highlight=False, emoji=False) if as_json else stdout_console()
        console.print(run_tree(tree, command(folder)))

    if enrich and (crash or crash_at is not None or no_vendor_key):
        raise typer.BadParameter(
            "--enrich sends no email, so --crash, --crash-at and --no-vendor-key do not go with it",
            param_hint="--enrich",
        )
    if mcp and (enrich or crash_at is not None or no_vendor_key):
        raise typer.BadParameter(
            "--mcp is a story of its own; of the others' options --crash goes with it", param_hint="--mcp"
        )
    folder = settings_of(context).folder
    options = DemoOptions(
        yes=yes,
        json=as_json,
        crash_at=_point(crash_at, crash=crash),
        vendor_key=not no_vendor_key,
        enrich=enrich,
        mcp=mcp,
        csv=csv,
        folder=DEFAULT_FOLDER if folder is None else folder,
    )
    raise typer.Exit(tell(options, show_tree))


def _point(named: str | None, *, crash: bool) -> CrashPoint | None:
    """The point a person chose.

    Raises:
        BadParameter: there is none of this name; names those there are.
    """
    if named is None:
        return CrashPoint.EFFECT_ACCEPTED if crash else None
    try:
        return CrashPoint(named)
    except ValueError:
        raise typer.BadParameter(
            f"there is no point {named!r}; the points are {', '.join(CrashPoint)}", param_hint="--crash-at"
        ) from None
