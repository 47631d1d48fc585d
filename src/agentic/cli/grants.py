"""``agentic grants``: which agent or workflow has which tool in an organization, taken back and given again while runs go on."""

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records

app = typer.Typer(
    name="grants", no_args_is_help=True, help="Lists, takes back and restores the tools of agents and workflows."
)
Definition = Annotated[
    str, typer.Argument(metavar="DEFINITION", help="An agent's name, or a workflow's as workflow:NAME.")
]
Tool = Annotated[str, typer.Argument(metavar="TOOL")]


@app.command("list")
def list_grants(
    context: typer.Context,
    definition: Annotated[
        str | None, typer.Argument(metavar="[DEFINITION]", help="Of this one; else of all that ever ran here.")
    ] = None,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """List which definition has which tool, or had it. A first run gives its definition the tools that it names."""
    from rich.table import Table

    from agentic.cli.records import with_records
    from agentic.cli.safe_text import safe_line
    from agentic.cli.times import minute
    from agentic.contract.plain import plain

    async def read(records: "Records") -> list[dict[str, Any]]:
        return [
            {name: plain(value) for name, value in grant.items()}
            for grant in await records.catalogue.grants(records.organization_id, definition=definition)
        ]

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        table = Table("definition", "tool", "state", "since", "by", box=None, pad_edge=False)
        for grant in found:
            since, who = grant["changed_at"] or grant["created_at"], grant["changed_by"] or grant["granted_by"]
            names = safe_line(grant["definition"]), safe_line(grant["tool"])
            table.add_row(*names, grant["state"], minute(since), str(who or ""))
        show(table)
    else:
        whose = "no definition" if definition is None else f"{definition!r}"
        say(f"{whose} has a tool here; the first run gives a definition those that it names")


@app.command()
def revoke(
    context: typer.Context,
    definition: Definition,
    tool: Tool,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Take a tool from a definition, at the next call, also of runs that wait and of calls that are approved already."""
    _set(context, definition, tool, organization, person, active=False, as_json=as_json)


@app.command()
def restore(
    context: typer.Context,
    definition: Definition,
    tool: Tool,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Give a definition a tool again that was taken from it."""
    _set(context, definition, tool, organization, person, active=True, as_json=as_json)


def _set(
    context: typer.Context,
    definition: str,
    tool: str,
    organization: UUID | None,
    person: UUID | None,
    *,
    active: bool,
    as_json: bool,
) -> None:
    from agentic.cli.records import acting, with_records

    folder = settings_of(context).folder

    async def act(records: "Records") -> bool:
        return await records.catalogue.set_grant(
            records.organization_id, definition, tool, active=active, user_id=acting(folder, person)
        )

    changed = with_records(folder, organization, act)
    state = "active" if active else "revoked"
    if as_json:
        show_json({"definition": definition, "tool": tool, "state": state, "changed": changed})
    else:
        say(f"{tool} of {definition} is {state}{'' if changed else ' already'}")
