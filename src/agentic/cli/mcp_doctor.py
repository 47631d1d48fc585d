"""``agentic mcp doctor`` and ``agentic mcp prompts``: looking at a server itself, without writing anything down."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic.cli.mcp_options import Name
from agentic.cli.options import Json, Organization, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.mcp_desk import ServerDesk
    from agentic.cli.mcp_examination import Step

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Servers; all by default.")]


def doctor(
    context: typer.Context, names: Names = None, organization: Organization = None, as_json: Json = False
) -> None:
    """Find out what keeps a server from working, step by step. Exits 1 when there is something."""
    from agentic.cli.mcp_desk import at_desk
    from agentic.cli.mcp_examination import examine

    async def act(desk: "ServerDesk") -> "list[Step]":
        found = []
        async for step in examine(desk, names or []):
            found.append(step)
            if not as_json:
                show(_line(step))
        return found

    found = at_desk(settings_of(context).folder, organization, act)
    if as_json:
        show_json([step.view() for step in found])
    if not all(step.ok for step in found):
        raise typer.Exit(1)


def prompts(context: typer.Context, name: Name, organization: Organization = None, as_json: Json = False) -> None:
    """List the prompts of a server, for you to look at. They are a stranger's words, never put before a model."""
    from rich.table import Table

    from agentic.cli.mcp_desk import Unusable, at_desk
    from agentic.cli.mcp_remedies import told
    from agentic.cli.safe_text import safe_line
    from agentic.services.mcp.failures import RemoteFailure
    from agentic.services.mcp.prompts import prompts as listed

    async def read(desk: "ServerDesk") -> list[dict[str, Any]]:
        standing = await desk.servers.server(desk.organization_id, name)
        async with desk.remote(standing.server) as remote:
            try:
                return [each.model_dump(mode="json") for each in await listed(remote)]
            except RemoteFailure as failure:
                raise Unusable(f"{name} cannot be used: {told(failure, name)}") from failure

    found = at_desk(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        table = Table("prompt (external)", "arguments", "description", box=None, pad_edge=False)
        for one in found:
            arguments = ", ".join(each["name"] for each in one["arguments"])
            table.add_row(*(safe_line(cell) for cell in (one["name"], arguments, one["description"])))
        show(table)
    else:
        say(f"{name} lists no prompts")


def _line(step: "Step") -> Any:
    from rich.text import Text

    from agentic.cli.safe_text import safe

    mark = ("✓ ", "green") if step.ok else ("✗ ", "bold red")
    of = f"{step.server}: " if step.server else ""
    line = Text.assemble(mark, (f"{of}{step.what}  ", "bold"), safe(step.said))
    return line if step.remedy is None else line.append(f"\n    {safe(step.remedy)}", style="yellow")
