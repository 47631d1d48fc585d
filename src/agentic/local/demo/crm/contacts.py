"""People and companies as values, and when two rows are the same one.

The same email is the same person; so are the same name and company, unless both rows have an email and these differ. The earlier
row wins, later ones only fill what it left empty, so the outcome depends on the file alone.
"""

import dataclasses
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Contact:
    """One person of the export. Empty strings are ``None``."""

    name: str
    email: str | None = None
    """Lower case."""
    company: str | None = None
    domain: str | None = None
    """The company's."""
    job_title: str | None = None
    phone: str | None = None
    city: str | None = None
    country: str | None = None
    notes: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Company:
    """One company of the export."""

    name: str
    domain: str | None = None


_PLAIN_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"})


def fold(text: str) -> str:
    """For comparing and searching: no case, no accents, single blanks. ``Łukasz  MÜLLER`` and ``lukasz muller`` are alike."""
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_PLAIN_LETTERS))
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())


def merge_contacts(contacts: Iterable[Contact]) -> tuple[list[Contact], int]:
    """Each person once, in order of first appearance, and how many rows were merged into an earlier one."""
    kept: list[Contact] = []
    by_email: dict[str, int] = {}
    by_name: dict[tuple[str, str], list[int]] = {}
    merged = 0
    for contact in contacts:
        key = (fold(contact.name), fold(contact.company or ""))
        position = by_email.get(contact.email) if contact.email else None
        if position is None and all(key):
            candidates = by_name.get(key, [])
            position = next((p for p in candidates if not contact.email or not kept[p].email), None)
        if position is None:
            position = len(kept)
            kept.append(contact)
            by_name.setdefault(key, []).append(position)
        else:
            kept[position] = _filled(kept[position], contact)
            merged += 1
        email = kept[position].email
        if email:
            by_email.setdefault(email, position)
    return kept, merged


def group_companies(contacts: Iterable[Contact]) -> tuple[list[Company], list[int | None]]:
    """Each company once, and for each contact the position of its own (``None`` without a company).

    The domain decides; a name joins the first company that goes by it, unless both sides have a domain and these differ.
    """
    kept: list[Company] = []
    by_domain: dict[str, int] = {}
    by_name: dict[str, int] = {}
    memberships: list[int | None] = []
    for contact in contacts:
        if contact.company is None:
            memberships.append(None)
            continue
        key = fold(contact.company)
        position = by_domain.get(contact.domain) if contact.domain else by_name.get(key)
        if position is None and key in by_name and kept[by_name[key]].domain is None:
            position = by_name[key]
        if position is None:
            position = len(kept)
            kept.append(Company(name=contact.company, domain=contact.domain))
        elif kept[position].domain is None:
            kept[position] = Company(name=kept[position].name, domain=contact.domain)
        by_name.setdefault(key, position)
        if contact.domain:
            by_domain[contact.domain] = position
        memberships.append(position)
    return kept, memberships


def _filled(first: Contact, later: Contact) -> Contact:
    missing = {
        field.name: getattr(later, field.name)
        for field in dataclasses.fields(Contact)
        if getattr(first, field.name) is None and getattr(later, field.name) is not None
    }
    return dataclasses.replace(first, **missing)
