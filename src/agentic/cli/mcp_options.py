"""Arguments and options that the commands of MCP servers share, and what is read from them. Imports nothing that takes time."""

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

if TYPE_CHECKING:
    from agentic.services.mcp.config import Classification

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]
Catalog = Annotated[
    str | None,
    typer.Option("--catalog", metavar="HASH", help="Only while the server offers this; 'diff --json' names it."),
]

Stdio = Annotated[
    str | None, typer.Option("--stdio", metavar="COMMAND", help="Program and arguments; runs beside the worker.")
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="A server somewhere else, over streamable HTTP.")]
Variables = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="A plain setting of --stdio, never a secret. Repeatable."),
]
Auth = Annotated[
    Literal["bearer", "header", "oauth2", "env", "none"] | None,
    typer.Option(help="How the credential of --connection is sent; env is for --stdio."),
]
ConnectionId = Annotated[UUID | None, typer.Option("--connection", metavar="ID", help="Whose credential it gets.")]
AuthName = Annotated[str | None, typer.Option("--auth-name", metavar="NAME", help="Of the header, or of the variable.")]
TokenEndpoint = Annotated[
    str | None, typer.Option("--token-endpoint", metavar="URL", help="Where oauth2 gets its tokens.")
]
TokenScopes = Annotated[
    list[str] | None, typer.Option("--token-scope", metavar="SCOPE", help="A scope to ask for. Repeatable.")
]
ConnectTimeout = Annotated[
    float | None,
    typer.Option(
        "--connect-timeout",
        metavar="SECONDS",
        min=10,
        max=120,
        help="For start and handshake, 10 by default; a first start of npx or uvx downloads.",
    ),
]
RequestTimeout = Annotated[
    float | None,
    typer.Option("--request-timeout", metavar="SECONDS", min=1, max=120, help="For one request, 30 by default."),
]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Write it down and talk to nobody.")]

SideEffects = Annotated[
    Literal["none", "read", "write", "send"] | None,
    typer.Option("--side-effects", help="What its tools do; a send until you say otherwise."),
]
Risk = Annotated[
    Literal["low", "medium", "high"] | None,
    typer.Option("--risk", help="How bad a wrong call is; high until you say otherwise."),
]
Idempotency = Annotated[
    Literal["read_only", "idempotent", "non_idempotent"] | None,
    typer.Option(
        "--idempotency", help="Whether doing it twice is doing it once; a read is read_only, the rest is not."
    ),
]
ParallelSafe = Annotated[bool, typer.Option("--parallel-safe", help="Reads of one turn run side by side.")]
Inherit = Annotated[
    bool, typer.Option("--inherit", help="End the tool's own class, so that the server's counts for it again.")
]


def classification(
    side_effects: str | None, risk: str | None, idempotency: str | None, *, parallel_safe: bool
) -> "Classification | None":
    """What was said of a tool; ``None`` when nothing was. What was left out is the most restrictive there is."""
    from agentic.services.mcp.config import Classification
    from agentic.services.tools.models import IdempotencyClass

    if not (side_effects or risk or idempotency or parallel_safe):
        return None
    if idempotency is None and side_effects in ("none", "read"):
        idempotency = str(IdempotencyClass.READ_ONLY)
    said = {"side_effects": side_effects, "risk": risk, "idempotency": idempotency}
    given = {name: value for name, value in said.items() if value is not None}
    return Classification.model_validate({**given, "parallel_safe": parallel_safe})


def authentication(
    auth: str | None, connection: UUID | None, name: str | None, endpoint: str | None, scopes: list[str] | None
) -> dict[str, Any] | None:
    """The authentication that was said, as fields of a configuration; ``None`` when nothing was.

    Raises:
        BadParameter: the options do not go together.
    """
    if (auth in (None, "none")) != (connection is None):
        raise typer.BadParameter("--auth and --connection go together")
    if auth is None or auth == "none":
        if name or endpoint or scopes:
            raise typer.BadParameter("--auth-name, --token-endpoint and --token-scope go with --auth")
        return None if auth is None else {"scheme": "none"}
    return {
        "scheme": "oauth2_client" if auth == "oauth2" else auth,
        "credential_ref": str(connection),
        "name": name,
        "token_endpoint": endpoint,
        "token_scopes": scopes or [],
    }


def timeouts(connect_s: float | None, request_s: float | None) -> dict[str, float]:
    """The waits that were said, as fields of a configuration."""
    said = {"connect_s": connect_s, "request_s": request_s}
    return {name: value for name, value in said.items() if value is not None}
