"""``agentic limits``: what an organization may spend in one day (UTC). The ceiling of one run stands in its definition."""

from typing import TYPE_CHECKING, Annotated

import typer

from agentic.cli.options import Json, Organization, Person, settings_of
from agentic.cli.output import say, show, show_json
from agentic.cli.prices import amount_of

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonObject

app = typer.Typer(name="limits", no_args_is_help=True, help="Shows and sets what may be spent in a day.")
_FIELDS = ("organization_id", "day", "limit", "spent", "held", "left")


@app.command("show")
def show_limits(context: typer.Context, organization: Organization = None, as_json: Json = False) -> None:
    """Show the organization's limit, what it spent and holds today, and what is left."""
    from agentic.api.usage_views import day_usage_view
    from agentic.cli.records import with_records
    from agentic.cli.usage_listings import limit_sheet

    async def read(records: "Records") -> "JsonObject":
        told = day_usage_view(await records.usage.of_day(records.organization_id))
        return {name: told[name] for name in _FIELDS}

    found = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(found)
    else:
        show(limit_sheet(found))


@app.command("set")
def set_limits(
    context: typer.Context,
    day: Annotated[
        str, typer.Option("--day", metavar="AMOUNT", help="US dollars a day (UTC), such as 25; none lifts the limit.")
    ],
    organization: Organization = None,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Set the limit of a day. It counts before the next segment of any run; a run that meets it ends, incomplete, and says so."""
    from agentic.cli.records import acting, with_records

    per_day = None if day.strip().lower() == "none" else amount_of(day, "--day")
    folder = settings_of(context).folder

    async def act(records: "Records") -> "JsonObject":
        await records.usage.set_limit(records.organization_id, per_day, user_id=acting(folder, person))
        return {
            "organization_id": str(records.organization_id),
            "limit": None if per_day is None else format(per_day, "f"),
        }

    saved = with_records(folder, organization, act)
    if as_json:
        show_json(saved)
    elif per_day is None:
        say(f"organization {saved['organization_id']} may spend without limit")
    else:
        say(f"organization {saved['organization_id']} may spend {saved['limit']} USD a day (UTC)")
