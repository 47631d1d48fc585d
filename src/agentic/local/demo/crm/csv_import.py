"""A CRM export on disk to contacts: reads, cleans, merges, counts. Storing is the store's.

Takes comma, semicolon or tab. Nothing is guessed silently: what was merged, repaired, skipped or lacks an email is counted.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentic.local.demo.crm import columns
from agentic.local.demo.crm.contacts import Company, Contact, group_companies, merge_contacts
from agentic.local.demo.crm.decoding import decode, repair
from agentic.local.demo.crm.problems import CsvProblem

SAMPLE = Path(__file__).parent / "data" / "contacts.csv"
"""The export that ships with the package. Its people are invented."""

MAX_BYTES = 20 * 1024 * 1024
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_EMAIL = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>.]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What a file held.

    Attributes:
        contacts: each person once, in order of first appearance.
        companies: each company once.
        rows: rows with anything in them, the heading not counted.
        merged: rows that were another row's person.
        missing_email: contacts kept without a usable email.
        repaired: cells whose mojibake was undone.
        skipped: rows with neither a name nor an email.
        encoding: ``utf-8``, ``cp1252`` or ``mixed``.
        delimiter: ``comma``, ``semicolon`` or ``tab``.
    """

    contacts: tuple[Contact, ...]
    companies: tuple[Company, ...]
    rows: int
    merged: int
    missing_email: int
    repaired: int
    skipped: int
    encoding: str
    delimiter: str


def load_contacts(path: Path) -> ImportReport:
    """Read an export.

    Args:
        path: a CSV file of at most 20 MB; its columns are those of ``columns.ACCEPTED``, in any order.

    Raises:
        CsvProblem: the file cannot be read as such an export; says what to do.
    """
    decoded = decode(_read(path), path.name)
    delimiter = _delimiter(decoded.text, path.name)
    rows = _rows(decoded.text, delimiter, path.name)
    _, headings = next(rows)
    fields = columns.match(headings, path.name)
    contacts: list[Contact] = []
    count = repaired = skipped = 0
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        count += 1
        if any(cell.strip() for cell in cells[len(fields) :]):
            raise CsvProblem(
                f"{path.name}, line {line}: more cells than the heading has columns; quote the cell that holds a delimiter"
            )
        mended = [repair(cell) for cell in cells]
        repaired += sum(cell != before for cell, before in zip(mended, cells, strict=True))
        contact = _contact(dict(zip(fields, mended, strict=False)))
        if contact is None:
            skipped += 1
        else:
            contacts.append(contact)
    if count == 0:
        raise CsvProblem(f"{path.name} has a heading but no rows; export it again with the contacts in it")
    kept, merged = merge_contacts(contacts)
    companies, _ = group_companies(kept)
    return ImportReport(
        contacts=tuple(kept),
        companies=tuple(companies),
        rows=count,
        merged=merged,
        missing_email=sum(contact.email is None for contact in kept),
        repaired=repaired,
        skipped=skipped,
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


def _contact(cells: dict[str, str]) -> Contact | None:
    email = _line(cells.get("email", "")).lower().removeprefix("mailto:")
    name = _name(cells)
    if not name and not email:
        return None
    usable = email if _EMAIL.fullmatch(email) else None
    return Contact(
        name=name or email,
        email=usable,
        company=_line(cells.get("company", "")) or None,
        domain=_domain(cells.get("domain", "")),
        job_title=_line(cells.get("job_title", "")) or None,
        phone=_line(cells.get("phone", "")) or None,
        city=_line(cells.get("city", "")) or None,
        country=_line(cells.get("country", "")) or None,
        notes=unicodedata.normalize("NFC", cells.get("notes", "")).replace("\r\n", "\n").strip() or None,
        external_id=_line(cells.get("external_id", "")) or None,
    )


def _name(cells: dict[str, str]) -> str:
    full = _line(cells.get("full_name", ""))
    if full.count(",") == 1:  # "Müller, Anna"
        last, first = full.split(",")
        full = f"{first.strip()} {last.strip()}".strip()
    return full or _line(f"{cells.get('first_name', '')} {cells.get('last_name', '')}")


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _domain(text: str) -> str | None:
    host = _line(text).lower().removeprefix("https://").removeprefix("http://").removeprefix("www.")
    return host.split("/")[0] or None
