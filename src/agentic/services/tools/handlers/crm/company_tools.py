"""``crm.search_companies``, ``crm.get_company``, ``crm.upsert_company`` and ``crm.delete_company``."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.crm import companies
from agentic.services.tools.handlers.crm.declaring import (
    MAX_RESULTS,
    Hidden,
    Limit,
    Query,
    Upserted,
    beginning,
    read,
    write,
)
from agentic.services.tools.handlers.crm.facts import CompanyFacts
from agentic.services.tools.scoped_db import ScopedDatabase


class CompanySearch(BaseModel):
    """Arguments of ``crm.search_companies``."""

    query: Query = Field(description="Words of a name, domain, industry or place; all must occur.")
    limit: Limit = Field(default=10, description="Companies at most.")


class WhichCompany(BaseModel):
    """Arguments that name one company."""

    company_id: UUID = Field(description="The id of a company that a search found.")


class FoundCompany(BaseModel):
    """One company of a search. ``notes`` is their beginning."""

    id: str
    name: str
    domain: str | None
    industry: str | None
    city: str | None
    country: str | None
    notes: str | None


class WholeCompany(FoundCompany):
    """One company with everything that is known of it."""

    created_at: str
    updated_at: str


def company_tools(db: ScopedDatabase) -> list[Tool]:
    """The tools."""

    @read(
        "crm.search_companies",
        "Find companies in the CRM. Returns their ids, which other tools take.",
        max_results=MAX_RESULTS,
        item_kind="crm.company",
    )
    async def search_companies(ctx: CallContext, args: CompanySearch) -> list[FoundCompany]:
        rows = await companies.search_companies(db.of(ctx.organization_id), args.query, limit=args.limit)
        return [_found(row) for row in rows]

    @read("crm.get_company", "Read everything the CRM knows of one company.")
    async def get_company(ctx: CallContext, args: WhichCompany) -> WholeCompany:
        return WholeCompany.model_validate(await companies.get_company(db.of(ctx.organization_id), args.company_id))

    @write(
        "crm.upsert_company",
        "Make sure a company is in the CRM, with what is known of it. Finds it by its domain, else by its name; what is left out "
        "stays as it is.",
    )
    async def upsert_company(ctx: CallContext, args: CompanyFacts) -> Upserted:
        saved = await companies.upsert_company(db.of(ctx.organization_id), args)
        return Upserted(id=saved.id, created=saved.created, changed=list(saved.changed))

    async def whom(ctx: CallContext, args: WhichCompany) -> str:
        row = await companies.get_company(db.of(ctx.organization_id), args.company_id)
        return f"the company {row['name']}" + (f" ({row['domain']})" if row["domain"] else "")

    @write(
        "crm.delete_company",
        "Take a company out of the CRM. Its people stay.",
        risk="high",
        approval_preview=True,
        preview=whom,
    )
    async def delete_company(ctx: CallContext, args: WhichCompany) -> Hidden:
        deleted = await companies.delete_company(db.of(ctx.organization_id), args.company_id)
        return Hidden(id=str(args.company_id), deleted=deleted)

    return [search_companies, get_company, upsert_company, delete_company]


def _found(row: Mapping[str, Any]) -> FoundCompany:
    return FoundCompany.model_validate({**row, "notes": beginning(row["notes"])})
