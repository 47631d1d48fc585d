"""People of the CRM: found by their email address, else by their name within a company. Shown with their company's name and domain."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.companies import companies_of, get_company
from agentic.services.tools.handlers.crm.facts import PersonFacts, said
from agentic.services.tools.handlers.crm.keyed import KeyedRow, Saved, upsert
from agentic.services.tools.handlers.crm.records import Kind, get, hide, search, several
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Eq, Row

_FACTS: Final = ("email", "company_id", "job_title", "phone", "linkedin_url", "city", "country", "notes")
_SEARCHED: Final = ("name", "email", "job_title", "city", "country")
PERSON: Final = Kind(
    table="crm_people",
    one="person",
    many="people",
    columns=("id", "name", *_FACTS, "created_at", "updated_at"),
)


async def search_people(db: ScopedDb, query: str, *, limit: int, company_id: UUID | None = None) -> list[Row]:
    """People in whose name, address, title, company's name or place every word occurs, the oldest first."""
    of_company = [] if company_id is None else [Eq("company_id", company_id)]
    return await _with_companies(db, await search(db, PERSON, query, limit=limit, where=of_company))


async def get_person(db: ScopedDb, person_id: UUID) -> Row:
    """One person.

    Raises:
        NotFound: there is none of this id, or they were deleted.
    """
    return (await _with_companies(db, [await get(db, PERSON, person_id)]))[0]


async def people_of(db: ScopedDb, ids: Sequence[str]) -> list[Row]:
    """Those that are there, in the order of their ids here; at most 50 are asked for."""
    return await _with_companies(db, list((await several(db, PERSON, ids)).values()))


async def upsert_person(db: ScopedDb, facts: PersonFacts, *, companies: dict[str, Row] | None = None) -> Saved:
    """Find or make a person and set what is said of them.

    The address decides who it is; somebody of that name in that company whose address was not known gets it. Without an address the
    name decides within the company, the oldest of several first; a name without a company finds only people of whom neither is known.

    Args:
        db: whose.
        facts: what is said.
        companies: those that were read already, by id, for whoever brings many people; what is read here goes in.

    Raises:
        NotFound: there is no such company.
        RetryableUpstreamError: others kept writing the same person.
    """
    companies = {} if companies is None else companies
    company = None if facts.company_id is None else str(facts.company_id)
    if company is not None and company not in companies:
        companies[company] = await get_company(db, company)
    wanted = KeyedRow(
        table=PERSON.table,
        sure="email",
        name=facts.name,
        renames=True,
        within={"company_id": company},
        facts=said(facts, *_FACTS),
        columns=_FACTS,
        joins_known=company is not None,
    )

    async def searchable(row: Mapping[str, Any]) -> str:
        at = row.get("company_id")
        if at is not None and at not in companies:
            companies.update(await companies_of(db, [at]))
        parts = [row.get(column) for column in _SEARCHED] + [companies.get(at, {}).get("name") if at else None]
        return fold(" ".join(str(part) for part in parts if part))

    return await upsert(db, wanted, searchable)


async def delete_person(db: ScopedDb, person_id: UUID) -> bool:
    """Hide a person from every answer and every list. ``False`` when they were hidden already.

    Raises:
        NotFound: there never was one of this id.
    """
    return await hide(db, PERSON, person_id)


async def _with_companies(db: ScopedDb, rows: Sequence[Row]) -> list[Row]:
    """With the name and the domain of each one's company, as far as that is not deleted."""
    companies = await companies_of(db, [str(row["company_id"]) for row in rows if row["company_id"] is not None])
    found = ((row, companies.get(str(row["company_id"]), {})) for row in rows)
    return [{**row, "company": company.get("name"), "company_domain": company.get("domain")} for row, company in found]
