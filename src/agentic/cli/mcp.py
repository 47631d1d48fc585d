"""``agentic mcp``: tool servers of others, from the first look to the last call (docs/mcp.md)."""

from typing import TYPE_CHECKING, Annotated

import typer

from agentic.cli.mcp_add import add, configure
from agentic.cli.mcp_call import call
from agentic.cli.mcp_doctor import doctor, prompts
from agentic.cli.mcp_options import (
    Catalog,
    Idempotency,
    Inherit,
    Name,
    ParallelSafe,
    Risk,
    SideEffects,
    classification,
)
from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from pathlib import Path

    from agentic.cli.mcp_desk import ServerDesk
    from agentic.cli.mcp_homes import Left
    from agentic.contract.json_types import JsonArray, JsonObject
    from agentic.services.mcp.drift import Drift
    from agentic.services.mcp.records import Standing

app = typer.Typer(
    name="mcp", no_args_is_help=True, help="Adds tool servers of others, says what their tools do, and approves them."
)
app.command("add")(add)
app.command("configure")(configure)
app.command("call")(call)
app.command("doctor")(doctor)
app.command("prompts")(prompts)
Tool = Annotated[str | None, typer.Argument(metavar="[TOOL]", help="The tool, as the server names it.")]
Tools = Annotated[
    list[str] | None, typer.Argument(metavar="[TOOL]…", help="Tools, as the server names them; all by default.")
]


@app.command("list")
def list_servers(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the servers of an organization, the retired ones last."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import server_table, server_view

    async def read(desk: "ServerDesk") -> "list[JsonObject]":
        return [server_view(one) for one in await desk.servers.servers(desk.organization_id)]

    found = at_desk(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(server_table(found))
    else:
        say("there are no MCP servers; 'agentic mcp add NAME --stdio COMMAND' or '--url URL' adds one")


@app.command("show")
def show_server(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """Show one server. How it is reached, where it is in its life, and the catalogs it has shown."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import server_sheet, server_view

    async def read(desk: "ServerDesk") -> "JsonObject":
        standing = await desk.servers.server(desk.organization_id, name)
        shown = await desk.servers.generations(desk.organization_id, name)
        catalogs: JsonArray = [{"catalog": digest, "first_seen": at.isoformat()} for digest, at in shown]
        return {**server_view(standing.server), "catalogs": catalogs}

    found = at_desk(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    else:
        show(server_sheet(found))


@app.command("tools")
def list_tools(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """List the tools of a server. What is approved, what waits, what changed, and what is not carried and why."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import tool_table, tool_views

    async def read(desk: "ServerDesk") -> "JsonArray":
        return tool_views(await desk.servers.server(desk.organization_id, name))

    found = at_desk(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(tool_table(found))
    else:
        say(f"{name} has shown no tools; 'agentic mcp verify {name}' looks")


@app.command()
def verify(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """Look at what a server offers now. It is written down, and nothing else changes. Exits 1 when it cannot be used."""
    from agentic.cli.mcp_desk import Unusable, at_desk

    async def act(desk: "ServerDesk") -> "tuple[Standing, Unusable | None]":
        unusable = None
        try:
            await desk.verify(name)
        except Unusable as failure:
            unusable = failure
        return await desk.servers.server(desk.organization_id, name), unusable

    standing, unusable = at_desk(settings_of(context).folder, organization, act)
    if unusable is None or as_json:
        _show_standing(standing, "{count} tools", as_json=as_json, failure=unusable)
    if unusable is not None:
        raise unusable


@app.command()
def activate(
    context: typer.Context,
    name: Name,
    catalog: Catalog = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Approve a verified server as it showed itself. Its tools are offered to runs that start from now on."""
    from agentic.cli.mcp_desk import at_desk

    async def act(desk: "ServerDesk") -> "Standing":
        shown = await desk.servers.server(desk.organization_id, name)
        await desk.servers.activate(
            desk.organization_id, name, offered_hash=catalog or _shown(shown), user_id=desk.acting(person)
        )
        return await desk.servers.server(desk.organization_id, name)

    standing = at_desk(settings_of(context).folder, organization, act)
    _show_standing(standing, "runs that start from now on may have what is approved of it", as_json=as_json)


@app.command()
def diff(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """Show what differs from what was approved. In the server's own words. Exits 1 when something waits for a person."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import drift_text, drift_view

    async def read(desk: "ServerDesk") -> "tuple[Drift, Standing]":
        found = await desk.servers.diff(desk.organization_id, name)
        return found, await desk.servers.server(desk.organization_id, name)

    found, standing = at_desk(settings_of(context).folder, organization, read)
    if as_json:
        show_json(drift_view(found))
    elif standing.server.offered_hash is None:
        say(f"{name} has shown nothing yet; 'agentic mcp verify {name}' looks")
    elif found.nothing:
        say(f"{name} offers what was approved")
    else:
        show(drift_text(found))
        say(f"these are the server's words; 'agentic mcp approve {name}' approves it as it is now")
    if not found.nothing:
        raise typer.Exit(1)


@app.command()
def approve(
    context: typer.Context,
    name: Name,
    tools: Tools = None,
    catalog: Catalog = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Approve tools as a server declares them now. Without any, all of them, and what it withdrew is forgotten."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.safe_text import safe_line

    async def act(desk: "ServerDesk") -> tuple[str, ...]:
        shown = await desk.servers.server(desk.organization_id, name)
        return await desk.servers.approve(
            desk.organization_id,
            name,
            tools or None,
            offered_hash=catalog or _shown(shown),
            user_id=desk.acting(person),
        )

    anew = at_desk(settings_of(context).folder, organization, act)
    if as_json:
        show_json({"server_id": name, "approved": list(anew)})
    elif anew:
        say(f"approved as declared now: {', '.join(map(safe_line, anew))}")
    else:
        say("everything named was approved so already")


@app.command()
def classify(
    context: typer.Context,
    name: Name,
    tool: Tool = None,
    side_effects: SideEffects = None,
    risk: Risk = None,
    idempotency: Idempotency = None,
    parallel_safe: ParallelSafe = False,
    inherit: Inherit = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Say what a server's tools do, or one of them. What you leave out is taken for the most restrictive there is."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import class_words, server_view
    from agentic.cli.safe_text import safe_line

    said = classification(side_effects, risk, idempotency, parallel_safe=parallel_safe)
    if inherit and (said is not None or tool is None):
        raise typer.BadParameter("--inherit is said of one TOOL, and nothing else with it")
    if said is None and not inherit:
        raise typer.BadParameter("say --side-effects, --risk, --idempotency or --parallel-safe, or --inherit of a tool")

    async def act(desk: "ServerDesk") -> "JsonObject":
        if tool is not None:
            _check_known(await desk.servers.server(desk.organization_id, name), tool)
        return server_view(
            await desk.servers.classify(desk.organization_id, name, said, remote_name=tool, user_id=desk.acting(person))
        )

    server = at_desk(settings_of(context).folder, organization, act)
    if as_json:
        show_json(server)
    else:
        of = f"{safe_line(tool)} of {name}" if tool else f"every tool of {name} that has no class of its own"
        as_all = " as every tool without a class of its own" if inherit else ""
        say(f"{of} is {class_words(server, None if inherit else tool)}{as_all}")


@app.command()
def retire(
    context: typer.Context,
    name: Name,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """End a server for good. The next call of any run is refused, and its name is not used again.

    The HOME that a stdio server has here goes with it, when no other organization has the server and no process lives there.
    """
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_homes import WORDS

    async def act(desk: "ServerDesk") -> "tuple[bool, Path, Left | None, bool]":
        changed = await desk.servers.retire(desk.organization_id, name, user_id=desk.acting(person))
        home, there = desk.home(name), desk.home_is_there(name)
        return changed, home, await desk.remove_home(name), there

    changed, home, left, there = at_desk(settings_of(context).folder, organization, act)
    if as_json:
        show_json({"server_id": name, "changed": changed, "home": str(left or "removed") if there else None})
        return
    say(f"{name} is retired{'' if changed else ' already'}")
    if left is not None:
        say(f"its home {home} is left: {WORDS[left]}")
    elif there:
        say(f"its home {home} is removed")


def _show_standing(standing: "Standing", more: str, *, as_json: bool, failure: Exception | None = None) -> None:
    """A server that was acted on, with its tools.

    Args:
        more: said behind its state; ``{count}`` is how many tools it has.
        failure: why it cannot be used, for programs.
    """
    from agentic.cli.mcp_views import server_view, tool_table, tool_views

    server, tools = server_view(standing.server), tool_views(standing)
    if as_json:
        show_json({"server": server, "tools": tools, **({} if failure is None else {"failure": str(failure)})})
    else:
        show(tool_table(tools))
        say(f"{server['server_id']} is {server['state']}; {more.format(count=len(tools))}")


def _check_known(standing: "Standing", tool: str) -> None:
    """Refuse a name that the server has not shown, which would be mistyped. One that has shown nothing may be classified ahead of that."""
    from difflib import get_close_matches

    from agentic.cli.safe_text import safe_line
    from agentic.contract.errors import NotFound

    server = standing.server
    if server.offered_hash is None or standing.knows(tool):
        return
    near = get_close_matches(tool, [each.remote_name for each in standing.offered.tools], n=3)
    meant = (
        f"did you mean {', '.join(map(safe_line, near))}?"
        if near
        else f"'agentic mcp tools {server.server_id}' lists them"
    )
    raise NotFound(f"{server.server_id} has shown no tool {tool!r}, and nothing was changed; {meant}")


def _shown(standing: "Standing") -> str:
    from agentic.contract.errors import Conflict

    if standing.server.offered_hash is None:
        name = standing.server.server_id
        raise Conflict(f"{name} has shown nothing yet; 'agentic mcp verify {name}' looks")
    return standing.server.offered_hash
