"""Companies in the CRM's table: found by their domain, else by their name. No answer holds a deleted one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.facts import CompanyFacts, said
from agentic.services.tools.handlers.crm.keyed import KeyedRow, Saved, upsert
from agentic.services.tools.handlers.crm.reading import delete, one, words
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import In, IsNull, Order, Row

COMPANIES: Final = "crm_companies"
COLUMNS: Final = ("id", "name", "domain", "industry", "city", "country", "notes", "created_at", "updated_at")
"""What is shown of a company, and nothing else is."""
_FACTS: Final = ("domain", "industry", "city", "country", "notes")
_SEARCHED: Final = ("name", "domain", "industry", "city", "country")


async def search_companies(db: ScopedDb, query: str, *, limit: int) -> list[Row]:
    """Companies in whose name, domain, industry or place every word occurs, the oldest first."""
    where = [*words(query), IsNull("deleted_at")]
    return await db.select(COMPANIES, COLUMNS, where=where, order=[Order("created_at"), Order("id")], limit=limit)


async def get_company(db: ScopedDb, company_id: UUID | str) -> Row:
    """One company.

    Raises:
        NotFound: there is none of this id, or it was deleted.
    """
    row = await one(db, COMPANIES, COLUMNS, company_id)
    if row is None:
        raise NotFound(f"there is no company {company_id}; search for companies and use an id that comes back")
    return row


async def companies_of(db: ScopedDb, ids: Sequence[str]) -> Mapping[str, Row]:
    """Those that are there, by id; at most 50 are asked for."""
    if not ids:
        return {}
    unique = tuple(dict.fromkeys(ids))
    rows = await db.select(
        COMPANIES, ("id", "name", "domain"), where=[In("id", unique), IsNull("deleted_at")], limit=len(unique)
    )
    return {str(row["id"]): row for row in rows}


async def upsert_company(db: ScopedDb, facts: CompanyFacts) -> Saved:
    """Find or make a company and set what is said of it.

    The domain decides which one it is; a company of that name whose domain was not known gets it. Without a domain the name decides,
    the oldest of several first. The name stays as it was first written: other companies may be found by it.

    Raises:
        RetryableUpstreamError: others kept writing the same company.
    """
    key = fold(facts.name)
    known = said(facts, *_FACTS)
    if facts.domain is not None:
        known["domain_key"] = facts.domain
    wanted = KeyedRow(
        table=COMPANIES,
        sure="domain_key",
        names={"name": facts.name, "name_key": key},
        renames=False,
        weak={"name_key": key},
        facts=known,
        joins_known=True,
        columns=("name", "name_key", "domain_key", "search_text", *_FACTS),
    )
    return await upsert(db, wanted, _searchable)


async def delete_company(db: ScopedDb, company_id: UUID) -> bool:
    """Hide a company from every answer; its people stay. ``False`` when it was hidden already.

    Raises:
        NotFound: there never was one of this id.
    """
    return await delete(db, COMPANIES, company_id, called="company")


async def _searchable(row: Mapping[str, Any]) -> str:
    return fold(" ".join(str(row[column]) for column in _SEARCHED if row.get(column)))
