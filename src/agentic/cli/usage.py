"""``agentic usage``: what a run used and what it cost, line by line, or what an organization used in a day (M1)."""

from datetime import date
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from agentic.cli.options import Json, Limit, Organization, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.contract.json_types import JsonArray, JsonObject

Run = Annotated[UUID | None, typer.Argument(metavar="RUN", help="The run's id; by default the day is told.")]
Day = Annotated[
    str | None,
    typer.Option("--day", metavar="DATE", help="A day (UTC) such as 2026-11-30, or today; by default today."),
]


def usage(
    context: typer.Context,
    run: Run = None,
    day: Day = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=3660, help="Sums by day of so many days, until --day.")
    ] = None,
    organization: Organization = None,
    limit: Limit = 500,
    as_json: Json = False,
) -> None:
    """Show what a run and its children used and cost, or what the organization used in a day, its limit, and what is left."""
    if run is not None and (day is not None or days is not None):
        raise typer.BadParameter("name a run or a day, not both")
    if days is not None:
        _show_days(context, _day(day), days, organization, as_json=as_json)
        return
    told = _of_day(context, _day(day), organization) if run is None else _of_run(context, run, organization, limit)
    if as_json:
        show_json(told)
        return
    from agentic.cli.usage_listings import day_sheet, run_sheet
    from agentic.local.program import command

    agentic = command(settings_of(context).folder)
    show(day_sheet(told, agentic) if run is None else run_sheet(told, agentic))


def _show_days(
    context: typer.Context, last: date | None, days: int, organization: UUID | None, *, as_json: bool
) -> None:
    from agentic.api.usage_views import day_sum_view
    from agentic.cli.records import with_records
    from agentic.cli.usage_listings import days_sheet

    async def read(records: "Records") -> "JsonArray":
        return [day_sum_view(one) for one in await records.retention.daily(records.organization_id, last, days)]

    told = with_records(settings_of(context).folder, organization, read)
    if as_json:
        show_json(told)
    elif told:
        show(days_sheet(told))
    else:
        say("no sums of these days; they are made once a day, and by 'db retain'")


def _of_run(context: typer.Context, run: UUID, organization: UUID | None, limit: int) -> "JsonObject":
    from agentic.api.usage_views import run_usage_view
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "JsonObject":
        return run_usage_view(await records.usage.of_run(records.organization_id, run, limit=limit))

    return with_records(settings_of(context).folder, organization, read)


def _of_day(context: typer.Context, day: date | None, organization: UUID | None) -> "JsonObject":
    from agentic.api.usage_views import day_usage_view
    from agentic.cli.records import with_records

    async def read(records: "Records") -> "JsonObject":
        return day_usage_view(await records.usage.of_day(records.organization_id, day))

    return with_records(settings_of(context).folder, organization, read)


def _day(text: str | None) -> date | None:
    """``None`` is today, by the database's clock."""
    if text is None or text.strip().lower() == "today":
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise typer.BadParameter(f"--day {text!r} is no date; write it as 2026-11-30, or today") from error
