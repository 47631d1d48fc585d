"""``agentic db``: the schema of the database, and what has been kept in it long enough."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic.cli.options import Json, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.services.retention.models import Removed, RetentionPeriods

app = typer.Typer(name="db", no_args_is_help=True, help="The schema of the database, and removing what is over.")


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


@app.command()
def retain(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go. Removes nothing.")] = False,
    runs_days: Annotated[int | None, typer.Option(min=1, help="Keep ended runs so long; by default 395 days.")] = None,
    spans_days: Annotated[
        int | None, typer.Option(min=1, help="Keep trees of runs so long; by default 90 days.")
    ] = None,
    events_days: Annotated[
        int | None, typer.Option(min=1, help="Keep events of runs so long; by default 90 days.")
    ] = None,
    outbox_days: Annotated[int | None, typer.Option(min=1, help="Keep sent events so long; by default 7 days.")] = None,
    deliveries_days: Annotated[
        int | None, typer.Option(min=1, help="Keep claims and counts of deliveries so long; by default 90 days.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove what has been kept long enough, in all organizations, as the daily function does. Runs that go on stay whole."""
    from dataclasses import asdict

    from pydantic import ValidationError

    from agentic.cli.records import with_records
    from agentic.services.retention.models import RetentionPeriods

    asked = {
        "runs_days": runs_days,
        "spans_days": spans_days,
        "events_days": events_days,
        "outbox_days": outbox_days,
        "deliveries_days": deliveries_days,
    }
    try:
        periods = RetentionPeriods(**{name: days for name, days in asked.items() if days is not None})
    except ValidationError as error:
        raise typer.BadParameter("; ".join(map(_said, error.errors()))) from error

    async def act(records: "Records") -> "Removed":
        return await _retain(records, periods, dry_run=dry_run)

    removed = asdict(with_records(settings_of(context).folder, None, act))
    left = removed.pop("left")
    if as_json:
        show_json({**removed, "left": left, "dry_run": dry_run})
        return
    for name, count in removed.items():
        say(f"{'would remove' if dry_run else 'removed'} {count} {name.replace('_', ' ')}")
    if left:
        say("something is left; run it again")


def _said(fault: Mapping[str, Any]) -> str:
    options = [f"--{str(name).replace('_', '-')}" for name in fault["loc"]]
    return ": ".join([*options, fault["msg"]])


async def _retain(records: "Records", periods: "RetentionPeriods", *, dry_run: bool) -> "Removed":
    from agentic.services.retention.service import Retention
    from agentic.services.usage.rollup import Rollup
    from agentic.storage.supabase_object_store import object_store_of

    async with object_store_of() as bodies:
        retention = Retention(records.retention, bodies=bodies, periods=periods)
        if dry_run:
            return await retention.preview()
        await Rollup(records.retention).compute()  # the sums of lines that are about to go
        return await retention.sweep()
