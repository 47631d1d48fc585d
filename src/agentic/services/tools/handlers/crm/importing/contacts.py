"""People and companies of a file as values, and when two rows are the same one. Pure.

The same email is the same person; so are the same name and company, unless both rows have an email and these differ. Outside of any
company a name is one person among those without an email. The earlier row wins, later ones only fill what it left empty, so the
outcome depends on the file alone.
"""

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.facts import CompanyFacts, PersonFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Contact:
    """One person of the file. Empty strings are ``None``."""

    name: str
    email: str | None = None
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
    """One company of the file."""

    name: str
    domain: str | None = None


Place = TypeVar("Place", bound=Hashable)


def merge_contacts(
    contacts: Sequence[Contact], companies: Sequence[Place | None]
) -> tuple[list[Contact], list[Place | None]]:
    """Each person once, in order of first appearance, and the company of each.

    Args:
        contacts: the rows.
        companies: for each row which company it belongs to, whatever tells them apart; ``None`` for none.
    """
    kept: list[Contact] = []
    theirs: list[Place | None] = []
    by_email: dict[str, int] = {}
    by_name: dict[tuple[str, Place | None], list[int]] = {}
    for contact, company in zip(contacts, companies, strict=True):
        position = by_email.get(contact.email) if contact.email else None
        if position is None:
            there = by_name.get((fold(contact.name), company), ())
            position = next((at for at in there if _may_be_one(kept[at], contact, company)), None)
        if position is None:
            position = len(kept)
            kept.append(contact)
            theirs.append(company)
            _note(by_name, kept[position], company, position)
        else:
            kept[position] = _filled(kept[position], contact)
            if theirs[position] is None and company is not None:
                theirs[position] = company
                _note(by_name, kept[position], company, position)
        email = kept[position].email
        if email:
            by_email.setdefault(email, position)
    return kept, theirs


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


def person_facts(contact: Contact, company_id: UUID | None) -> PersonFacts:
    """A person as the CRM takes them.

    Raises:
        pydantic.ValidationError: one of the texts is too long.
    """
    return PersonFacts(
        name=contact.name,
        email=contact.email,
        company_id=company_id,
        job_title=contact.job_title,
        phone=contact.phone,
        city=contact.city,
        country=contact.country,
        notes=contact.notes,
    )


def company_facts(company: Company) -> CompanyFacts:
    """A company as the CRM takes it. Raises as ``person_facts``."""
    return CompanyFacts(name=company.name, domain=company.domain)


def _note(
    by_name: dict[tuple[str, Place | None], list[int]], contact: Contact, company: Place | None, position: int
) -> None:
    by_name.setdefault((fold(contact.name), company), []).append(position)


def _may_be_one(known: Contact, contact: Contact, company: Hashable | None) -> bool:
    if company is None:
        return not known.email and not contact.email
    return not known.email or not contact.email


def _filled(first: Contact, later: Contact) -> Contact:
    missing = {
        field.name: getattr(later, field.name)
        for field in dataclasses.fields(Contact)
        if getattr(first, field.name) is None and getattr(later, field.name) is not None
    }
    return dataclasses.replace(first, **missing)
