"""Companies of the CRM: found by their domain, else by their name."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.facts import CompanyFacts, said
from agentic.services.tools.handlers.crm.keyed import KeyedRow, Saved, upsert
from agentic.services.tools.handlers.crm.records import Kind, get, hide, search, several
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Row

_FACTS: Final = ("domain", "industry", "city", "country", "notes")
_SEARCHED: Final = ("name", "domain", "industry", "city", "country")
COMPANY: Final = Kind(
    table="crm_companies",
    one="company",
    many="companies",
    columns=("id", "name", *_FACTS, "created_at", "updated_at"),
)


async def search_companies(db: ScopedDb, query: str, *, limit: int) -> list[Row]:
    """Companies in whose name, domain, industry or place every word occurs, the oldest first."""
    return await search(db, COMPANY, query, limit=limit)


async def get_company(db: ScopedDb, company_id: UUID | str) -> Row:
    """One company.

    Raises:
        NotFound: there is none of this id, or it was deleted.
    """
    return await get(db, COMPANY, company_id)


async def companies_of(db: ScopedDb, ids: Sequence[str]) -> Mapping[str, Row]:
    """Name and domain of those that are there, by id; at most 50 are asked for."""
    return await several(db, COMPANY, ids, columns=("id", "name", "domain"))


async def upsert_company(db: ScopedDb, facts: CompanyFacts) -> Saved:
    """Find or make a company and set what is said of it.

    The domain decides which one it is; a company of that name whose domain was not known gets it. Without a domain the name decides,
    the oldest of several first. The name stays as it was first written: other companies may be found by it.

    Raises:
        RetryableUpstreamError: others kept writing the same company.
    """
    wanted = KeyedRow(
        table=COMPANY.table,
        sure="domain",
        name=facts.name,
        renames=False,
        within={},
        facts=said(facts, *_FACTS),
        columns=_FACTS,
        joins_known=True,
    )
    return await upsert(db, wanted, _searchable)


async def delete_company(db: ScopedDb, company_id: UUID) -> bool:
    """Hide a company from every answer; its people stay. ``False`` when it was hidden already.

    Raises:
        NotFound: there never was one of this id.
    """
    return await hide(db, COMPANY, company_id)


async def _searchable(row: Mapping[str, Any]) -> str:
    return fold(" ".join(str(row[column]) for column in _SEARCHED if row.get(column)))
