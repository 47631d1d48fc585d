"""The tree of commands. Each group is a file; what a command needs is imported when it runs, so that help is instant."""

from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from agentic.cli import (
    approvals,
    audit,
    capacity,
    connections,
    crm,
    db,
    demo,
    dev,
    grants,
    jobs,
    limits,
    mcp,
    members,
    policy,
    prices,
    runs,
    serve,
    tools,
    uncertain,
    usage,
)
from agentic.cli.options import settings_of

DISTRIBUTION = "agentic-platform"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Governs what AI agents do to the world: decides each call, runs it at most once, can say what happened.",
)
for group in (
    db.app,
    tools.app,
    grants.app,
    members.app,
    connections.app,
    crm.app,
    mcp.app,
    policy.app,
    runs.app,
    approvals.app,
    uncertain.app,
    jobs.app,
    audit.app,
    capacity.app,
    prices.app,
    limits.app,
):
    app.add_typer(group)
app.command("dev")(dev.dev)
app.command("worker")(dev.worker)
app.command("usage")(usage.usage)
app.command("serve")(serve.serve)
app.command("token")(dev.token)
app.command("demo", epilog=demo.CRASH_POINTS)(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"agentic {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


def _folder(text: str) -> Path:
    if not text.strip():
        raise typer.BadParameter("it is empty; name a folder, or leave the option out for .agentic here")
    return Path(text)


@app.callback()
def root(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(
            parser=_folder,
            metavar="FOLDER",
            help="Where the embedded database and the identity are kept; by default .agentic here.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep the global options where every command finds them."""
    del version  # its callback has answered
    settings = settings_of(context)
    settings.folder = folder
    settings.debug = debug
