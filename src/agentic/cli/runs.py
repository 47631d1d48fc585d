"""``agentic runs``: what runs there are, what one of them did, and asking one to stop."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from agentic.cli.options import Json, Limit, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonArray, JsonObject

app = typer.Typer(name="runs", no_args_is_help=True, help="Lists, shows and cancels runs.")
Run = Annotated[UUID, typer.Argument(metavar="RUN", help="The run's id.")]


@app.command("list")
def list_runs(
    context: typer.Context, organization: Organization = None, limit: Limit = 50, as_json: Json = False
) -> None:
    """List the newest runs."""
    from agentic.api.views import run_list_view
    from agentic.cli.listings import run_table
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "tuple[JsonArray, UUID]":
        rows = await records.runs.recent(records.organization_id, limit=limit)
        return run_list_view(rows), records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(run_table(found))
    else:
        say(f"organization {where} has no runs")


@app.command("show")
def show_run(
    context: typer.Context,
    run: Run,
    organization: Organization = None,
    full: Annotated[bool, typer.Option("--full", help="Print every line of a long run.")] = False,
    as_json: Json = False,
) -> None:
    """Show a run as a tree: every model request and call, with decision, approval, attempt, replay and cost."""
    from agentic.api.views import tree_view
    from agentic.cli.records import with_records
    from agentic.cli.run_tree import run_tree
    from agentic.local.program import command

    folder = settings_of(context).folder

    async def read(records: "Records") -> "JsonObject":
        return tree_view(await records.runs.tree(records.organization_id, run))

    tree = with_records(folder, organization, read)
    if as_json:
        show_json(tree)
    else:
        show(run_tree(tree, command(folder), full=full))


@app.command("cancel")
def cancel_run(context: typer.Context, run: Run, organization: Organization = None, person: Person = None) -> None:
    """Ask a run to stop at its next call. What it has already done stays done."""
    from agentic.cli.records import acting, with_records

    folder = settings_of(context).folder

    async def act(records: "Records") -> "tuple[bool, str]":
        nudge = await records.runs.cancel(records.organization_id, run, user_id=acting(folder, person))
        if nudge is not None:
            await records.flush([nudge])
        tree = await records.runs.tree(records.organization_id, run)  # tells a missing run from one that is over
        return nudge is not None, tree.run["state"]

    asked, state = with_records(folder, organization, act)
    say(f"run {run} is asked to stop" if asked else f"run {run} is {state} and is not asked again")
