"""``agentic db``: the schema of the database."""

import asyncio

import typer

from agentic.cli.options import Json, settings_of
from agentic.cli.output import say, show, show_json

app = typer.Typer(name="db", no_args_is_help=True, help="Brings the database to this build's schema.")


@app.command()
def bootstrap(context: typer.Context) -> None:
    """Create the roles and functions that Supabase provides, on a plain Postgres that has none."""
    from agentic.cli.records import home_of
    from agentic.local.postgres import bootstrap_supabase
    from agentic.storage.connection import connect, describe

    async def reach(url: str) -> None:
        await (await connect(url)).close()

    with home_of(settings_of(context).folder).database() as url:
        asyncio.run(reach(url))
        ours = bootstrap_supabase(url)
        say(f"the database {describe(url)} {'has the stand-ins now' if ours else 'is a Supabase; nothing was changed'}")


@app.command()
def migrate(context: typer.Context, as_json: Json = False) -> None:
    """Apply the migrations that are missing, oldest first, each in a transaction of its own."""
    from agentic.cli.records import home_of
    from agentic.storage.connection import describe
    from agentic.storage.migrations import migrate as apply

    with home_of(settings_of(context).folder).database() as url:
        applied = asyncio.run(apply(url))
        where = describe(url)
    if as_json:
        show_json([{"version": migration.version, "name": migration.name} for migration in applied])
        return
    for migration in applied:
        say(f"applied {migration.version} {migration.name}")
    say(f"the database {where} is up to date")


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Say how each migration stands. Changes nothing."""
    from rich.table import Table

    from agentic.cli.records import home_of
    from agentic.storage.migrations import status as read

    with home_of(settings_of(context).folder).database() as url:
        found = asyncio.run(read(url))
    if as_json:
        show_json([{"version": row.version, "name": row.name, "state": str(row.state)} for row in found])
        return
    table = Table("version", "name", "state", box=None)
    for row in found:
        table.add_row(row.version, row.name or "", str(row.state))
    show(table)
