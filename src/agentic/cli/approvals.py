"""``agentic approvals``: what waits for a person, and the answer (A3, A4, A5)."""

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from agentic.cli.options import Comment, Json, Limit, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonObject, JsonValue

app = typer.Typer(name="approvals", no_args_is_help=True, help="Lists and decides approvals.")
Id = Annotated[UUID, typer.Argument(metavar="ID", help="The approval's id.")]
Status = Literal["pending", "approved", "rejected", "expired", "cancelled"]


@app.command("list")
def list_approvals(
    context: typer.Context,
    status: Annotated[Status | None, typer.Option(help="Only those in this state.")] = None,
    run: Annotated[UUID | None, typer.Option("--run", metavar="RUN", help="Only those of this run.")] = None,
    organization: Organization = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List approvals, newest first."""
    from agentic.api.views import approval_view
    from agentic.cli.listings import approval_table
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "tuple[list[JsonValue], UUID]":
        found = await records.approvals.find(records.organization_id, run_id=run, status=status, limit=limit)
        return [approval_view(approval) for approval in found], records.organization_id

    found, where = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    elif found:
        show(approval_table(found))
    else:
        say(f"organization {where} has no such approvals")


@app.command("show")
def show_approval(
    context: typer.Context, approval: Id, organization: Organization = None, as_json: Json = False
) -> None:
    """Show one approval: exactly the call that it would let run."""
    from agentic.api.views import approval_view
    from agentic.cli.approval_card import approval_card
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "JsonObject":
        return approval_view(await records.approvals.show(records.organization_id, approval))

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    else:
        show(approval_card(found))


@app.command()
def approve(
    context: typer.Context,
    approval: Id,
    comment: Comment = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Let the call run, once."""
    _decide(context, approval, "approved", comment, organization, person, as_json=as_json)


@app.command()
def reject(
    context: typer.Context,
    approval: Id,
    comment: Comment = None,
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Refuse the call, for the rest of its run."""
    _decide(context, approval, "rejected", comment, organization, person, as_json=as_json)


def _decide(
    context: typer.Context,
    approval: UUID,
    verdict: str,
    comment: str | None,
    organization: UUID | None,
    person: UUID | None,
    *,
    as_json: bool,
) -> None:
    from agentic.api.views import approval_view
    from agentic.cli.records import acting, with_records
    from agentic.services.approvals.models import Verdict

    folder = settings_of(context).folder

    async def act(records: "Records") -> "JsonObject":
        decided = await records.approvals.decide(
            records.organization_id,
            approval,
            user_id=acting(folder, person),
            verdict=Verdict(verdict),
            comment=comment,
        )
        return approval_view(decided)

    decided = with_records(folder, organization, act)
    if as_json:
        show_json(decided)
    else:
        say(f"{decided['tool']} is {decided['status']} (approval {approval})")
