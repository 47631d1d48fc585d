"""Which columns an export may have, under which headings.

A heading matches whatever its case, with blanks, underscores and hyphens alike. ``ACCEPTED`` is the documentation.
"""

import re
from collections.abc import Mapping, Sequence

from agentic.services.tools.handlers.crm.importing.problems import CsvProblem

ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "first_name": ("first name", "firstname", "given name", "vorname", "fornavn"),
    "last_name": ("last name", "lastname", "surname", "family name", "nachname", "etternavn"),
    "full_name": ("name", "full name", "contact", "contact name"),
    "email": ("email", "e mail", "email address", "mail", "primary email"),
    "company": ("company", "company name", "organization", "organisation", "account", "account name", "firma"),
    "domain": ("company domain", "company domain name", "domain", "website"),
    "job_title": ("job title", "title", "position", "role"),
    "phone": ("phone", "phone number", "telephone", "mobile", "mobile phone number"),
    "city": ("city", "town"),
    "country": ("country", "country region"),
    "notes": ("notes", "note", "comments", "description"),
    "external_id": ("record id", "id", "contact id"),
}
_FIELDS = {heading: field for field, headings in ACCEPTED.items() for heading in (field.replace("_", " "), *headings)}


def known(headings: Sequence[str]) -> int:
    """How many of these headings are ours; tells the right delimiter from the wrong ones."""
    return sum(_key(heading) in _FIELDS for heading in headings)


def match(headings: Sequence[str], name: str) -> list[str]:
    """The field of each column, in order; an unnamed column at the end (a trailing delimiter) gets ``""``.

    Args:
        headings: the first row.
        name: how the file is called in a complaint.

    Raises:
        CsvProblem: unknown headings, one field twice, or a required one missing; every one is named.
    """
    trimmed = list(headings)
    while trimmed and not trimmed[-1].strip():
        trimmed.pop()
    unknown = [heading.strip() or "(empty)" for heading in trimmed if _key(heading) not in _FIELDS]
    if unknown:
        raise CsvProblem(
            f"{name} has unknown columns: {', '.join(unknown)}; rename or remove them. Accepted: {_listing()}"
        )
    fields = [_FIELDS[_key(heading)] for heading in trimmed]
    twice = sorted({field for field in fields if fields.count(field) > 1})
    if twice:
        raise CsvProblem(f"{name} has more than one column for: {', '.join(twice)}; keep one of each")
    missing = [field for field in ("email", "company") if field not in fields]
    if "full_name" not in fields and not {"first_name", "last_name"} <= set(fields):
        missing.insert(0, "full_name (or first_name and last_name)")
    if missing:
        raise CsvProblem(f"{name} lacks required columns: {', '.join(missing)}; add them. Accepted: {_listing()}")
    return fields + [""] * (len(headings) - len(trimmed))


def _key(heading: str) -> str:
    return re.sub(r"[\s_\-/]+", " ", heading).strip().casefold()


def _listing() -> str:
    return ", ".join(ACCEPTED)
