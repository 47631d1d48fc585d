"""``agentic members``: who may do what in an organization. The way to its first member, for whoever administers the database."""

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records

app = typer.Typer(name="members", no_args_is_help=True, help="Lists members, and gives people their role.")
User = Annotated[UUID, typer.Argument(metavar="USER", help="The person's id.")]
RoleName = Annotated[
    Literal["member", "approver", "operator", "admin"],
    typer.Argument(metavar="ROLE", help="member, approver, operator or admin; each may do what those before it may."),
]


@app.command("list")
def list_members(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List the members of an organization with their roles."""
    from rich.table import Table

    from agentic.cli.records import with_records
    from agentic.cli.times import minute
    from agentic.local.program import command

    async def read(records: "Records") -> tuple[list[dict[str, str]], UUID]:
        members = await records.members.list(records.organization_id)
        return [
            {"user_id": str(one.user_id), "role": str(one.role), "since": one.since.isoformat()} for one in members
        ], records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        table = Table("user", "role", "since", box=None, pad_edge=False)
        for member in found:
            table.add_row(member["user_id"], member["role"], minute(member["since"]))
        show(table)
    else:
        say(
            f"organization {where} has no members; '{command(settings_of(context).folder)} members put USER admin' makes the first"
        )


@app.command()
def put(
    context: typer.Context, user: User, role: RoleName, organization: Organization = None, as_json: Json = False
) -> None:
    """Make a person a member, or change the role. Asks for no role of yours: you administer the database."""
    from agentic.cli.records import with_records
    from agentic.contract.principal import Role

    async def act(records: "Records") -> UUID:
        await records.members.put(records.organization_id, user, Role(role))
        return records.organization_id

    where = with_records(settings_of(context).folder, organization, act)
    if as_json:
        show_json({"organization_id": str(where), "user_id": str(user), "role": role})
    else:
        say(f"{user} is {role} in organization {where}")
