"""``agentic runs``: starting a run, what runs there are, what one of them did, and asking one to stop."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, cast
from uuid import UUID, uuid4

import typer

from agentic.cli.options import Json, Limit, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json
from agentic.cli.run_watch import watch_run
from agentic.contract.lanes import Lane

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonArray, JsonObject
    from agentic.services.runs.models import RunState

app = typer.Typer(name="runs", no_args_is_help=True, help="Starts, lists, shows, watches and cancels runs.")
app.command("watch")(watch_run)
Run = Annotated[UUID, typer.Argument(metavar="RUN", help="The run's id.")]
InLane = typer.Option("--lane", help="interactive goes before batch.")
Moment = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]
STATES = ("queued", "running", "parked", "succeeded", "failed", "cancelled")


@app.command("start")
def start_run(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Name of an agent that the app declares.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it should do.")],
    app_path: Annotated[
        str, typer.Option("--app", metavar="MODULE:NAME", help="Where your App is, such as my.module:app.")
    ],
    request_key: Annotated[
        str | None,
        typer.Option("--request-key", metavar="KEY", help="The same key finds the run again; by default a new one."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on with this conversation of the person.")
    ] = None,
    lane: Annotated[Lane, InLane] = Lane.INTERACTIVE,
    deadline_s: Annotated[
        float | None, typer.Option("--deadline", metavar="SECONDS", help="Fail the run when it is not over by then.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when it is over, or waits for a person; a worker must be running.")
    ] = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Start a run of an agent, or find the one that the same request key started."""
    from agentic.api.views import run_view
    from agentic.cli.records import acting
    from agentic.cli.starting import Wanted, start

    folder = settings_of(context).folder
    wanted = Wanted(
        agent=agent,
        text=text,
        request_key=request_key or str(uuid4()),
        session=session,
        lane=lane,
        deadline_s=deadline_s,
        wait=wait,
    )
    created, row = start(folder, app_path, wanted, organization=organization, user_id=acting(folder, person))
    if as_json:
        show_json({"created": created, "run": run_view(row)})
        return
    say(f"run {row['id']} is {row['state']}" + ("" if created else "; an earlier start with this key made it"))
    if row["answer"] is not None:
        typer.echo(row["answer"])


@app.command("list")
def list_runs(
    context: typer.Context,
    organization: Organization = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help=f"One of {', '.join(STATES)}; several may be given."),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Of this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Of this conversation.")] = None,
    lane: Annotated[Lane | None, InLane] = None,
    root: Annotated[
        UUID | None, typer.Option("--root", metavar="RUN", help="The tree of this run: it and what it started.")
    ] = None,
    after: Annotated[
        datetime | None, typer.Option("--after", formats=Moment, help="Made then or later, in UTC.")
    ] = None,
    before: Annotated[
        datetime | None, typer.Option("--before", formats=Moment, help="Made before then, in UTC.")
    ] = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the list before this one ended.")
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    from agentic.api.pages import cursor_of, place_of
    from agentic.api.views import run_list_view
    from agentic.cli.listings import run_table
    from agentic.cli.records import with_records
    from agentic.services.runs.models import RunQuery

    unknown = [name for name in state or () if name not in STATES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is no state; the states are {', '.join(STATES)}")
    query = RunQuery(
        states=cast("list[RunState] | None", state or None),
        agent=agent,
        session_id=session,
        lane=lane,
        root_run_id=root,
        created_after=_in_utc(after),
        created_before=_in_utc(before),
    )
    try:
        behind = None if cursor is None else place_of(cursor)
    except ValueError as error:
        raise typer.BadParameter("the cursor is none that a listing gave out; begin without one") from error

    async def read(records: "Records") -> "tuple[JsonArray, str | None, UUID]":
        page = await records.runs.page(records.organization_id, query, limit=limit, behind=behind)
        return run_list_view(page.rows), cursor_of(page.behind), records.organization_id

    found, more, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(run_table(found))
    else:
        say(f"organization {where} has no runs" + (" like these" if query != RunQuery() or cursor else ""))
    if more is not None:
        say(f"there are more; go on with --cursor {more}")


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
def cancel_run(
    context: typer.Context,
    run: Run,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept in the run's record.")] = None,
    organization: Organization = None,
    person: Person = None,
) -> None:
    """Ask a run, and the runs it started, to stop at their next call. What they have already done stays done."""
    from agentic.cli.records import acting, with_records

    folder = settings_of(context).folder

    async def act(records: "Records") -> "tuple[bool, str]":
        nudges = await records.runs.cancel(records.organization_id, run, user_id=acting(folder, person), reason=reason)
        await records.flush(nudges)
        row = await records.runs.row(records.organization_id, run)  # tells a missing run from one that is over
        return bool(nudges), row["state"]

    asked, state = with_records(folder, organization, act)
    say(f"run {run} is asked to stop" if asked else f"run {run} is {state} and is not asked again")


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
