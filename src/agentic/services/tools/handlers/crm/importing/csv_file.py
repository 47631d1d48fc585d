"""A CRM export on disk to contacts: reads, cleans, merges, counts. Storing is ``entering``'s.

Takes comma, semicolon or tab. Nothing is guessed silently: what was merged, repaired, left out or lacks an email is counted. What
is wrong with the file as a whole refuses it; what is wrong with a row leaves that row out, by its line.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agentic.services.tools.handlers.crm.canonical import domain_of, email_of, fold, lines, one_line
from agentic.services.tools.handlers.crm.importing import columns
from agentic.services.tools.handlers.crm.importing.contacts import (
    Company,
    Contact,
    company_facts,
    group_companies,
    merge_contacts,
    person_facts,
)
from agentic.services.tools.handlers.crm.importing.decoding import decode, repair
from agentic.services.tools.handlers.crm.importing.problems import BadRow, CsvProblem

MAX_BYTES = 20 * 1024 * 1024
MAX_ROWS = 100_000
"""A file is in memory as a whole, so that a person or a company of many rows is entered once; these two bound it."""
_SHOWN = 60
"""Characters of a cell that a person is shown."""
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What a file holds.

    Attributes:
        contacts: each person once, in order of first appearance.
        companies: each company once.
        memberships: for each contact the position of its company; ``None`` for none.
        rows: rows with anything in them, the heading not counted.
        merged: rows that were another row's person.
        missing_email: contacts kept without a usable email.
        repaired: cells whose mojibake was undone.
        bad: rows that are left out.
        emptied: cells that hold no address or no domain though they should; their rows go in without.
        encoding: ``utf-8``, ``cp1252`` or ``mixed``.
        delimiter: ``comma``, ``semicolon`` or ``tab``.
    """

    contacts: tuple[Contact, ...]
    companies: tuple[Company, ...]
    memberships: tuple[int | None, ...]
    rows: int
    merged: int
    missing_email: int
    repaired: int
    bad: tuple[BadRow, ...]
    emptied: tuple[BadRow, ...]
    encoding: str
    delimiter: str


class _Unusable(Exception):
    """A row is left out; the message is why."""


def load_contacts(path: Path) -> ImportReport:
    """Read an export.

    Args:
        path: a CSV file of at most 20 MB and 100,000 rows; its columns are those of ``columns.ACCEPTED``, in any order.

    Raises:
        CsvProblem: the file cannot be read as such an export, or none of its rows can be used; says what to do.
    """
    decoded = decode(_read(path), path.name)
    delimiter = _delimiter(decoded.text, path.name)
    rows = _rows(decoded.text, delimiter, path.name)
    _, headings = next(rows)
    fields = columns.match(headings, path.name)
    contacts: list[Contact] = []
    bad: list[BadRow] = []
    emptied: list[BadRow] = []
    repaired = 0
    for line, cells in rows:
        if len(contacts) + len(bad) == MAX_ROWS:
            raise CsvProblem(f"{path.name} has more than {MAX_ROWS:,} rows; split the export")
        mended = [repair(cell) for cell in cells]
        try:
            said, contact = _contact(fields, mended)
        except _Unusable as unusable:
            bad.append(BadRow(line=line, why=str(unusable)))
        else:
            contacts.append(contact)
            emptied += [BadRow(line=line, why=why) for why in _emptied(said, contact)]
            repaired += sum(cell != before for cell, before in zip(mended, cells, strict=True))
    if not contacts:
        if bad:
            raise CsvProblem(f"{path.name} has no row that can be used; {bad[0]}")
        raise CsvProblem(f"{path.name} has a heading but no rows; export it again with the contacts in it")
    companies, memberships = group_companies(contacts)
    kept, theirs = merge_contacts(contacts, memberships)
    return ImportReport(
        contacts=tuple(kept),
        companies=tuple(companies),
        memberships=tuple(theirs),
        rows=len(contacts) + len(bad),
        merged=len(contacts) - len(kept),
        missing_email=sum(contact.email is None for contact in kept),
        repaired=repaired,
        bad=tuple(bad),
        emptied=tuple(emptied),
        encoding=decoded.encoding,
        delimiter=_DELIMITERS[delimiter],
    )


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise CsvProblem(f"{path} is a folder; give the CSV file in it")
        if not path.exists():
            raise CsvProblem(f"{path} does not exist; check the path")
        if not path.is_file():
            raise CsvProblem(f"{path} is not a regular file; save the export to disk first")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise CsvProblem(f"{path} cannot be read ({problem.strerror}); check its permissions") from problem
    if len(raw) > MAX_BYTES:
        raise CsvProblem(f"{path.name} is larger than {MAX_BYTES // 1024**2} MB; split the export")
    if not raw.strip(b"\xef\xbb\xbf\r\n\t ,;"):
        raise CsvProblem(f"{path.name} is empty; export the contacts again")
    return raw


def _delimiter(text: str, name: str) -> str:
    """The one under which the most headings are ours; on a tie the one that splits most."""

    def score(delimiter: str) -> tuple[int, int]:
        try:
            headings = next(_rows(text, delimiter, name))[1]
        except CsvProblem:
            return (
                0,
                0,
            )  # quoted headings cannot be read under a wrong delimiter; the right one complains itself if it must
        return columns.known(headings), len(headings)

    best = max(_DELIMITERS, key=score)
    if score(best)[1] == 1:
        raise CsvProblem(
            f"{name}: no comma, semicolon or tab separates the columns of its first line; export it with one of these"
        )
    return best


def _rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Number of the line a row starts on, and its cells; blank lines are passed over."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    start = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise CsvProblem(
                f"{name}, line {start}: {problem}; look for a quotation mark that is not closed or not doubled"
            ) from problem
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield start, cells
        start = reader.line_num + 1


def _contact(fields: list[str], cells: list[str]) -> tuple[dict[str, str], Contact]:
    """What a row says by field, and the person it is.

    Raises:
        _Unusable: why it is left out.
    """
    if any(cell.strip() for cell in cells[len(fields) :]):
        raise _Unusable("more cells than the heading has columns; quote the cell that holds a delimiter")
    by_field = dict(zip(fields, cells, strict=False))
    said = {field: one_line(cell) for field, cell in by_field.items()}
    email = email_of(said.get("email", ""))
    name = _name(said) or email
    if name is None or not fold(name):
        raise _Unusable("neither a name nor an email")
    contact = Contact(
        name=name,
        email=email,
        company=said.get("company") or None,
        domain=domain_of(said.get("domain", "")),
        job_title=said.get("job_title") or None,
        phone=said.get("phone") or None,
        city=said.get("city") or None,
        country=said.get("country") or None,
        notes=lines(by_field.get("notes", "")) or None,
        external_id=said.get("external_id") or None,
    )
    _check(contact)
    return said, contact


def _emptied(said: dict[str, str], contact: Contact) -> Iterator[str]:
    for field, kept, what in (("email", contact.email, "address"), ("domain", contact.domain, "domain")):
        text = said.get(field, "")
        if text and kept is None:
            yield f"{field}: {text[:_SHOWN]!r} is no {what}"


def _check(contact: Contact) -> None:
    """Hold a row to what the CRM's tools take."""
    try:
        person_facts(contact, company_id=None)
        if contact.company is not None:
            company_facts(Company(name=contact.company, domain=contact.domain))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _Unusable(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def _name(said: dict[str, str]) -> str | None:
    full = said.get("full_name", "")
    if full.count(",") == 1:  # "Müller, Anna"
        last, first = full.split(",")
        full = one_line(f"{first} {last}")
    return full or one_line(f"{said.get('first_name', '')} {said.get('last_name', '')}") or None
