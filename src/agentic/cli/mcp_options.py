"""Arguments and options that the commands of MCP servers share. Imports nothing that takes time."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from agentic.services.mcp.config import Classification

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]
Catalog = Annotated[
    str | None,
    typer.Option("--catalog", metavar="HASH", help="Only while the server offers this; 'diff --json' names it."),
]
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
