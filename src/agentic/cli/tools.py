"""``agentic tools``: those the database knows, what is switched off or released, and what is wrong with those of an app."""

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records

app = typer.Typer(name="tools", no_args_is_help=True, help="Checks, lists, shows, switches and releases tools.")
Name = Annotated[str, typer.Argument(metavar="NAME")]
Version = Annotated[int, typer.Argument(metavar="VERSION", min=1)]


@app.command()
def validate(
    context: typer.Context,
    app_path: Annotated[str, typer.Option("--app", metavar="MODULE:NAME", help="Your App.")],
    as_json: Json = False,
) -> None:
    """Name every fault of an app's tools and agents. Needs no database. Exits with 1 when there is one."""
    from agentic.cli.records import home_of
    from agentic.cli.tool_checks import check_app
    from agentic.cli.tool_listings import check_lines
    from agentic.cli.vendors import reach_vendors_of

    reach_vendors_of(home_of(settings_of(context).folder))
    found = check_app(app_path)
    if as_json:
        show_json(found)
    else:
        show(check_lines(found))
    if found["faults"]:
        raise typer.Exit(1)


@app.command("list")
def list_tools(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the newest contract of each tool, with what is true of it now."""
    from agentic.cli.records import with_records
    from agentic.cli.tool_listings import tool_table
    from agentic.contract.plain import plain

    async def read(records: "Records") -> list[dict[str, Any]]:
        return [_plain(plain(tool)) for tool in await records.catalogue.tools(records.organization_id)]

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(tool_table(found))
    else:
        say("no tool is known yet; 'agentic serve' publishes those of an app, and a run freezes its own when it starts")


@app.command("show")
def show_tool(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """Show one tool: its contract whole, its versions and their releases, and who changed what."""
    from agentic.cli.records import with_records
    from agentic.cli.tool_listings import tool_sheet
    from agentic.contract.plain import plain

    async def read(records: "Records") -> dict[str, Any]:
        return _plain(plain(await records.catalogue.tool(records.organization_id, name)))

    tool = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(tool)
    else:
        show(tool_sheet(tool))


@app.command()
def enable(
    context: typer.Context, name: Name, organization: Organization = None, person: Person = None, as_json: Json = False
) -> None:
    """Let an organization's runs call a tool again."""
    _switch(context, name, organization, person, enabled=True, as_json=as_json)


@app.command()
def disable(
    context: typer.Context, name: Name, organization: Organization = None, person: Person = None, as_json: Json = False
) -> None:
    """Make a tool unavailable in an organization, at the next call, also to runs that wait. Effects that are done still answer."""
    _switch(context, name, organization, person, enabled=False, as_json=as_json)


@app.command()
def release(
    context: typer.Context,
    name: Name,
    version: Version,
    deprecate: Annotated[
        bool, typer.Option("--deprecate", help="New runs do not get it; others finish with it.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Nobody gets it any more.")] = False,
    in_flight: Annotated[
        Literal["finish", "refuse"] | None,
        typer.Option(help="Of a revocation: runs that have it may still call it, or are refused."),
    ] = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Move a version of a tool on in its life; it never comes back. A tool written as code moves in every organization at once."""
    from agentic.cli.records import acting, with_records
    from agentic.services.tools.live import InFlight, ReleaseState

    if deprecate == revoke:
        raise typer.BadParameter("say either --deprecate or --revoke")
    if revoke != (in_flight is not None):
        raise typer.BadParameter("--in-flight finish or refuse goes with --revoke: what becomes of runs that have it?")
    folder = settings_of(context).folder

    async def act(records: "Records") -> dict[str, Any]:
        moved = await records.catalogue.release(
            records.organization_id,
            name,
            version,
            state=ReleaseState.REVOKED if revoke else ReleaseState.DEPRECATED,
            in_flight=None if in_flight is None else InFlight(in_flight),
            user_id=acting(folder, person),
        )
        rule = None if moved.in_flight is None else str(moved.in_flight)
        return {
            "tool": name,
            "version": version,
            "release": str(moved.state),
            "in_flight": rule,
            "changed": moved.changed,
        }

    moved = with_records(folder, organization, act)
    if as_json:
        show_json(moved)
    else:
        say(f"{name} version {version} is {moved['release']}{'' if moved['changed'] else ' already'}")


def _switch(
    context: typer.Context, name: str, organization: UUID | None, person: UUID | None, *, enabled: bool, as_json: bool
) -> None:
    from agentic.cli.records import acting, with_records

    folder = settings_of(context).folder

    async def act(records: "Records") -> dict[str, Any]:
        changed = await records.catalogue.set_enabled(
            records.organization_id, name, enabled=enabled, user_id=acting(folder, person)
        )
        return {"tool": name, "enabled": enabled, "changed": changed}

    switched = with_records(folder, organization, act)
    if as_json:
        show_json(switched)
    else:
        say(f"{name} is {'enabled' if enabled else 'disabled'}{'' if switched['changed'] else ' already'}")


def _plain(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value
