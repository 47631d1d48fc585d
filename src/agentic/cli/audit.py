"""``agentic audit``: whether the record of a run is what was written (ADR 0030)."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from agentic.cli.options import Json, Organization, settings_of
from agentic.cli.output import say, show, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.services.audit.models import RunAudit

app = typer.Typer(name="audit", no_args_is_help=True, help="Checks the records of runs.")


def _moment(text: str) -> datetime:
    """A day or a time; without a zone it is UTC.

    Raises:
        BadParameter: it is neither.
    """
    from datetime import UTC

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write a day as 2031-05-06, or a time as 2031-05-06T07:08:09Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@app.callback()
def audit() -> None:
    """Checks the records of runs."""


@app.command()
def verify(
    context: typer.Context,
    run: Annotated[UUID | None, typer.Argument(metavar="[RUN]", help="The run's id.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the organization.")] = False,
    since: Annotated[
        datetime | None,
        typer.Option("--since", parser=_moment, metavar="DATE", help="With --all: only runs created then or later."),
    ] = None,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Check that nothing of a run's record was altered, removed, inserted or exchanged. Exits with 1 when something was.

    The JSON has the last hash of each chain: kept elsewhere, it still shows when somebody rewrites a whole chain here.
    """
    from agentic.cli.audit_report import counted, findings_text
    from agentic.cli.records import with_records

    if (run is None) != every:
        raise typer.BadParameter("name one RUN, or say --all")
    if since is not None and not every:
        raise typer.BadParameter("--since goes with --all")

    async def check(records: "Records") -> "list[RunAudit]":
        if run is not None:
            return [await records.audit.verify(records.organization_id, run)]
        return [found async for found in records.audit.verify_all(records.organization_id, since=since)]

    audits = with_records(settings_of(context).folder, organization, check)
    faulty = [found for found in audits if not found.whole]
    if as_json:
        told = [found.model_dump(mode="json") for found in audits]
        show_json(told[0] if run is not None else {"runs": len(audits), "faulty": len(faulty), "audits": told})
    elif faulty:
        show(findings_text(faulty))
    if not as_json:
        lines = sum(head.lines for found in audits for head in found.heads)
        broken = "1 run is not whole" if len(faulty) == 1 else f"{len(faulty)} runs are not whole"
        say(f"{counted(len(audits), 'run')}, {counted(lines, 'line')}: {broken if faulty else 'all whole'}")
    if faulty:
        raise typer.Exit(1)
