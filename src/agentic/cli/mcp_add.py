"""``agentic mcp add`` and ``configure``: where a command line of a person becomes a server of the deployment."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from uuid import UUID

import typer

from agentic.cli.mcp_options import (
    Auth,
    AuthName,
    ConnectionId,
    ConnectTimeout,
    Idempotency,
    Name,
    NoVerify,
    ParallelSafe,
    RequestTimeout,
    Risk,
    SideEffects,
    Stdio,
    TokenEndpoint,
    TokenScopes,
    Url,
    Variables,
    authentication,
    classification,
    timeouts,
)
from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.mcp_desk import ServerDesk
    from agentic.contract.json_types import JsonArray, JsonObject
    from agentic.services.mcp.config import StdioLaunch

_Stands: TypeAlias = "tuple[JsonObject, JsonArray]"


def add(
    context: typer.Context,
    name: Name,
    stdio: Stdio = None,
    url: Url = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="The server at --url is the deployment's own; it may be on this machine.")
    ] = False,
    variables: Variables = None,
    auth: Auth = None,
    connection: ConnectionId = None,
    auth_name: AuthName = None,
    token_endpoint: TokenEndpoint = None,
    token_scopes: TokenScopes = None,
    side_effects: SideEffects = None,
    risk: Risk = None,
    idempotency: Idempotency = None,
    parallel_safe: ParallelSafe = False,
    connect_timeout: ConnectTimeout = None,
    request_timeout: RequestTimeout = None,
    no_verify: NoVerify = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Add a server, and look at what it offers. Nothing of it is offered to a run before it is activated.

    Exits 1 when it was added and cannot be used.
    """
    if (stdio is None) == (url is None):
        raise typer.BadParameter(
            "say --stdio COMMAND for a server that is started here, or --url URL for one elsewhere"
        )
    if stdio is not None and operator:
        raise typer.BadParameter("--operator is for --url; a server of --stdio is the deployment's own in any case")
    folder = settings_of(context).folder
    launch = _launch(folder, name, stdio, variables)
    said = classification(side_effects, risk, idempotency, parallel_safe=parallel_safe)
    proof = authentication(auth, connection, auth_name, token_endpoint, token_scopes)
    raw: dict[str, Any] = {
        "server_id": name,
        "owner": "operator" if stdio is not None or operator else "tenant",
        "endpoint": {"type": "stdio"} if url is None else {"type": "http", "url": url},
        "timeouts": timeouts(connect_timeout, request_timeout),
        **({} if said is None else {"classification": said.model_dump(mode="json")}),
        **({} if proof is None else {"authentication": proof}),
    }

    async def act(desk: "ServerDesk") -> "_Stands":
        from agentic.cli.mcp_adding import put_down

        return await put_down(desk, raw, launch, person=person, verify=not no_verify)

    _do(folder, name, organization, act, as_json=as_json, classified=said is not None)


def configure(
    context: typer.Context,
    name: Name,
    stdio: Stdio = None,
    url: Url = None,
    variables: Variables = None,
    auth: Auth = None,
    connection: ConnectionId = None,
    auth_name: AuthName = None,
    token_endpoint: TokenEndpoint = None,
    token_scopes: TokenScopes = None,
    connect_timeout: ConnectTimeout = None,
    request_timeout: RequestTimeout = None,
    no_verify: NoVerify = False,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Reach a server in another way; what is not said stays. Another address or credential has to be activated again.

    Exits 1 when it cannot be used.
    """
    if stdio is not None and url is not None:
        raise typer.BadParameter("--stdio and --url exclude each other")
    folder = settings_of(context).folder
    launch = _launch(folder, name, stdio, variables)
    proof = authentication(auth, connection, auth_name, token_endpoint, token_scopes)
    waits = timeouts(connect_timeout, request_timeout)
    changes: dict[str, Any] = {
        **({} if url is None else {"endpoint": {"type": "http", "url": url}}),
        **({} if proof is None else {"authentication": proof}),
        **({"timeouts": waits} if waits else {}),
    }
    if launch is None and not changes:
        raise typer.BadParameter("say what is to be otherwise, such as --connect-timeout 120")

    async def act(desk: "ServerDesk") -> "_Stands":
        from agentic.cli.mcp_adding import put_otherwise

        return await put_otherwise(
            desk, name, changes, launch, with_variables=bool(variables), person=person, verify=not no_verify
        )

    _do(folder, name, organization, act, as_json=as_json, classified=True, waits_otherwise=connect_timeout is not None)


def _do(
    folder: Path | None,
    name: str,
    organization: UUID | None,
    act: "Callable[[ServerDesk], Awaitable[_Stands]]",
    *,
    as_json: bool,
    classified: bool,
    waits_otherwise: bool = False,
) -> None:
    from agentic.cli.mcp_adding import AddedUnusable
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_views import tool_table

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
    if waits_otherwise and server.get("start_s"):
        say(
            f"its entry in the file of servers says start_s {server['start_s']}, which counts for its start wherever that is"
        )
    _say_what_is_next(name, server, tools, folder, classified=classified)


def _say_what_is_next(
    name: str, server: "JsonObject", tools: "JsonArray", folder: Path | None, *, classified: bool
) -> None:
    from agentic.local.program import command

    again = command(folder)
    if server["state"] == "registered":
        say(f"{name} is registered, and nobody has talked to it. Next: {again} mcp verify {name}")
        return
    if server["state"] != "verified":
        say(f"{name} is {server['state']}, {len(tools)} tools")
        return
    unsaid = "" if classified else " What nobody has classified is a high-risk send."
    say(f"{name} is verified, {len(tools)} tools.{unsaid} Next:")
    if not classified:
        say(f"  {again} mcp classify {name} TOOL --side-effects read --risk low")
    say(f"  {again} mcp activate {name}")


def _launch(folder: Path | None, name: str, stdio: str | None, variables: Sequence[str] | None) -> "StdioLaunch | None":
    from agentic.cli.mcp_launch import NotLaunchable, launch_of, settings
    from agentic.cli.records import home_of

    if stdio is None:
        if variables:
            raise typer.BadParameter("--env is for --stdio, with which it is written down")
        return None
    try:
        return launch_of(stdio, home=home_of(folder).server_home(name), variables=settings(variables or []))
    except NotLaunchable as mistake:
        raise typer.BadParameter(str(mistake)) from None
