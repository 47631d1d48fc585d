"""``agentic uncertain``: calls whose outcome nobody knows, settled by a person who looked (ADR 0009)."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from agentic.cli.options import Evidence, Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonObject, JsonValue

app = typer.Typer(name="uncertain", no_args_is_help=True, help="Lists and settles calls whose outcome is unknown.")
Ref = Annotated[str, typer.Argument(metavar="REF", help="The call's reference.")]


@app.command("list")
def list_uncertain(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """List calls whose outcome is unknown, oldest first."""
    from agentic.api.views import uncertain_view
    from agentic.cli.listings import uncertain_table
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "tuple[list[JsonValue], UUID]":
        calls = await records.journal.list_uncertain(records.organization_id)
        return [uncertain_view(call) for call in calls], records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(uncertain_table(found))
    else:
        say(f"organization {where} has no call whose outcome is unknown")


@app.command("show")
def show_uncertain(context: typer.Context, ref: Ref, organization: Organization = None, as_json: Json = False) -> None:
    """Show one call whose outcome is unknown."""
    from agentic.api.views import uncertain_view
    from agentic.cli.approval_card import uncertain_card
    from agentic.cli.records import with_records
    from agentic.local.program import command

    folder = settings_of(context).folder

    async def read(records: "Records") -> "JsonObject":
        return uncertain_view(await records.journal.show(records.organization_id, ref))

    found = with_records(folder, organization, read)
    if as_json:
        show_json(found)
    else:
        show(uncertain_card(found, command(folder)))


@app.command()
def confirm(
    context: typer.Context, ref: Ref, evidence: Evidence, organization: Organization = None, person: Person = None
) -> None:
    """It happened: the call counts as done, and is never repeated."""
    _settle(context, ref, evidence, organization, person, happened=True)


@app.command()
def deny(
    context: typer.Context, ref: Ref, evidence: Evidence, organization: Organization = None, person: Person = None
) -> None:
    """It did not happen: the call may be proposed again, and asks for a new approval."""
    _settle(context, ref, evidence, organization, person, happened=False)


def _settle(
    context: typer.Context, ref: str, evidence: str, organization: UUID | None, person: UUID | None, *, happened: bool
) -> None:
    from agentic.cli.records import acting, with_records

    folder = settings_of(context).folder

    async def act(records: "Records") -> str:
        call = await records.journal.settle(
            records.organization_id, ref, happened=happened, user_id=acting(folder, person), evidence=evidence
        )
        return call.tool or call.scope

    tool = with_records(folder, organization, act)
    say(f"{tool} ({ref}) is settled: {'it happened' if happened else 'it did not happen'}")
