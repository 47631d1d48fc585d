"""``agentic tools``: the tools the database knows, as runs froze them or a deployment published them."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic.cli.options import Json, Organization, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from agentic.cli.records import Records

app = typer.Typer(name="tools", no_args_is_help=True, help="Lists tools and shows their contracts.")


@app.command("list")
def list_tools(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the newest contract of each tool."""
    from rich.table import Table

    from agentic.cli.records import with_records
    from agentic.cli.safe_text import safe_line

    async def read(records: "Records") -> list[dict[str, Any]]:
        return await records.catalogue.tools(records.organization_id)

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
        return
    if not found:
        say("no tool is known yet; a run freezes its tools when it starts")
        return
    table = Table("tool", "version", "effect", "repeats", "risk", "mode", "state", "description", box=None)
    for tool in found:
        cells = (tool["side_effects"], tool["idempotency"], tool["risk"], tool["mode"])
        state = "enabled" if tool["enabled"] else "disabled"
        table.add_row(tool["name"], str(tool["version"]), *cells, state, safe_line(tool["description"]))
    show(table)


@app.command("show")
def show_tool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Show one tool: its contract whole, with both schemas."""
    from agentic.cli.records import with_records
    from agentic.contract.errors import NotFound

    async def read(records: "Records") -> dict[str, Any]:
        for tool in await records.catalogue.tools(records.organization_id):
            if tool["name"] == name:
                contracts = await records.runs.contracts([tool["contract_hash"]])
                spec = contracts[tool["contract_hash"]].model_dump(mode="json")
                return {**spec, **tool}
        raise NotFound(f"there is no tool {name!r}; 'agentic tools list' shows those there are")

    tool = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(tool)
    else:
        show(_sheet(tool))


def _sheet(tool: Mapping[str, Any]) -> "RenderableType":
    from rich.text import Text

    from agentic.cli.listings import field_table
    from agentic.cli.safe_text import safe

    fields = {}
    for name, value in tool.items():
        if value not in (None, [], ""):
            text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            fields[name] = Text(safe(text))
    return field_table(fields)
