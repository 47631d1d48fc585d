"""``agentic mcp add``: the one place where a command line of a person becomes a server of the deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from agentic.cli.mcp_options import Idempotency, Name, ParallelSafe, Risk, SideEffects, classification
from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.mcp_desk import ServerDesk
    from agentic.contract.json_types import JsonArray, JsonObject

_SCHEMES = {"oauth2": "oauth2_client"}


def add(
    context: typer.Context,
    name: Name,
    stdio: Annotated[
        str | None, typer.Option("--stdio", metavar="COMMAND", help="Program and arguments; runs beside the worker.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="A server somewhere else, over streamable HTTP.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="The server at --url is the deployment's own; it may be on this machine.")
    ] = False,
    variable: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A plain setting of --stdio, never a secret. Repeatable."),
    ] = None,
    auth: Annotated[
        Literal["bearer", "header", "oauth2", "env"] | None,
        typer.Option(help="How the credential of --connection is sent; env is for --stdio."),
    ] = None,
    connection: Annotated[
        UUID | None, typer.Option("--connection", metavar="ID", help="Whose credential it gets.")
    ] = None,
    auth_name: Annotated[
        str | None, typer.Option("--auth-name", metavar="NAME", help="Of the header, or of the variable.")
    ] = None,
    token_endpoint: Annotated[
        str | None, typer.Option("--token-endpoint", metavar="URL", help="Where oauth2 gets its tokens.")
    ] = None,
    token_scope: Annotated[
        list[str] | None, typer.Option("--token-scope", metavar="SCOPE", help="A scope to ask for. Repeatable.")
    ] = None,
    side_effects: SideEffects = None,
    risk: Risk = None,
    idempotency: Idempotency = None,
    parallel_safe: ParallelSafe = False,
    connect_timeout: Annotated[
        float,
        typer.Option(
            "--connect-timeout",
            metavar="SECONDS",
            min=10,
            max=120,
            help="For start and handshake; a first start of npx or uvx downloads.",
        ),
    ] = 10,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Write it down and talk to nobody.")] = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Add a server, and look at what it offers. Nothing of it is offered to a run before it is activated.

    Exits 1 when it was added and cannot be used.
    """
    from agentic.cli.mcp_adding import AddedUnusable, put_down
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_launch import NotLaunchable, launch_of, settings
    from agentic.cli.mcp_views import tool_table
    from agentic.cli.records import home_of

    if (stdio is None) == (url is None):
        raise typer.BadParameter(
            "say --stdio COMMAND for a server that is started here, or --url URL for one elsewhere"
        )
    if stdio is None and variable:
        raise typer.BadParameter("--env is for --stdio; a server somewhere else has no environment of ours")
    if stdio is not None and operator:
        raise typer.BadParameter("--operator is for --url; a server of --stdio is the deployment's own in any case")
    if (auth is None) != (connection is None):
        raise typer.BadParameter("--auth and --connection go together")
    folder = settings_of(context).folder
    said = classification(side_effects, risk, idempotency, parallel_safe=parallel_safe)
    raw: dict[str, Any] = {
        "server_id": name,
        "owner": "operator" if stdio is not None or operator else "tenant",
        "endpoint": {"type": "stdio"} if url is None else {"type": "http", "url": url},
        "timeouts": {"connect_s": connect_timeout},
        **({} if said is None else {"classification": said.model_dump(mode="json")}),
    }
    if auth is not None:
        raw["authentication"] = {
            "scheme": _SCHEMES.get(auth, auth),
            "credential_ref": str(connection),
            "name": auth_name,
            "token_endpoint": token_endpoint,
            "token_scopes": token_scope or [],
        }
    elif auth_name or token_endpoint or token_scope:
        raise typer.BadParameter("--auth-name, --token-endpoint and --token-scope go with --auth")

    try:
        home = home_of(folder).server_home(name)
        launch = None if stdio is None else launch_of(stdio, home=home, variables=settings(variable or []))
    except NotLaunchable as mistake:
        raise typer.BadParameter(str(mistake)) from None

    async def act(desk: "ServerDesk") -> "tuple[JsonObject, JsonArray]":
        return await put_down(desk, raw, launch, person=person, verify=not no_verify)

    try:
        server, tools = at_desk(folder, organization, act)
    except AddedUnusable as unusable:
        if as_json:
            show_json({"server": unusable.server, "tools": [], "failure": str(unusable)})
        raise
    if as_json:
        show_json({"server": server, "tools": tools})
        return
    if tools:
        show(tool_table(tools))
    _say_what_is_next(name, server, tools, folder, classified=said is not None)


def _say_what_is_next(
    name: str, server: "JsonObject", tools: "JsonArray", folder: Path | None, *, classified: bool
) -> None:
    from agentic.local.program import command

    again = command(folder)
    if server["state"] == "registered":
        say(f"{name} is registered, and nobody has talked to it. Next: {again} mcp verify {name}")
        return
    unsaid = "" if classified else " What nobody has classified is a high-risk send."
    say(f"{name} is {server['state']}, {len(tools)} tools.{unsaid} Next:")
    if not classified:
        say(f"  {again} mcp classify {name} TOOL --side-effects read --risk low")
    say(f"  {again} mcp activate {name}")
