"""``agentic crm``: contacts of a file into the CRM, and a look at who is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic.cli.options import Json, Organization, settings_of
from agentic.cli.output import say, show_json

if TYPE_CHECKING:
    from agentic.cli.records import Records
    from agentic.services.tools.handlers.crm.importing import BadRow, Entered, ImportReport, Tally

app = typer.Typer(name="crm", no_args_is_help=True, help="Brings contacts into the CRM that the crm.* tools work on.")
_NAMED_AT_MOST = 20


@app.command("import")
def import_contacts(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A CSV export: a heading with name, email and company, and a row a person."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the file, say what it holds, and write nothing.")
    ] = False,
    organization: Organization = None,
    as_json: Json = False,
) -> None:
    """Enter the people and companies of a CSV file.

    Who is there already is found as the tools find them, by email and by domain, and gets what the file knows; what the file leaves
    empty stays. Bad rows are named and left out. Running it again, after it was stopped too, enters the rest and nothing twice.
    """
    from agentic.cli.records import with_records
    from agentic.services.tools.handlers.crm.importing import enter, load_contacts

    report = load_contacts(file)

    async def act(records: "Records") -> "Entered":
        async with records.tables() as tables:
            return await enter(tables.of(records.organization_id), report)

    entered = None if dry_run else with_records(settings_of(context).folder, organization, act)
    if as_json:
        show_json(_view(report, entered))
    else:
        _tell(file, report, entered)


def _view(report: "ImportReport", entered: "Entered | None") -> dict[str, object]:
    return {
        "dry_run": entered is None,
        "rows": report.rows,
        "people": len(report.contacts),
        "companies": len(report.companies),
        "merged": report.merged,
        "missing_email": report.missing_email,
        "repaired": report.repaired,
        "encoding": report.encoding,
        "delimiter": report.delimiter,
        "left_out": [{"line": bad.line, "why": bad.why} for bad in report.bad],
        "left_empty": [{"line": cell.line, "why": cell.why} for cell in report.emptied],
        "entered": None
        if entered is None
        else {"people": _counts(entered.people), "companies": _counts(entered.companies)},
    }


def _counts(tally: "Tally") -> dict[str, int]:
    return {"created": tally.created, "changed": tally.changed, "unchanged": tally.unchanged}


def _tell(file: Path, report: "ImportReport", entered: "Entered | None") -> None:
    for line in (*_named("left out", report.bad, "rows"), *_named("left empty", report.emptied, "cells")):
        say(line)
    details = (
        (report.merged, "merged into another"),
        (report.missing_email, "without email"),
        (report.repaired, "cells repaired"),
        (len(report.bad), "left out"),
        (len(report.emptied), "cells left empty"),
    )
    counted = ", ".join(f"{count} {what}" for count, what in details if count)
    say(
        f"{file.name}: {report.rows} rows, {len(report.contacts)} people, {len(report.companies)} companies"
        + (f" ({counted})" if counted else "")
    )
    if entered is None:
        say("nothing was written")
        return
    for what, tally in (("people", entered.people), ("companies", entered.companies)):
        say(f"{what}: {tally.created} new, {tally.changed} changed, {tally.unchanged} as they were")


def _named(what: str, found: "tuple[BadRow, ...]", kind: str) -> list[str]:
    named = [f"{what}, {row}" for row in found[:_NAMED_AT_MOST]]
    more = len(found) - len(named)
    return [*named, f"and {more} more {kind}; --json names all"] if more else named
