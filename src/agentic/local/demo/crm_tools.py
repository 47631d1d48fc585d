"""The demo's tools over its CRM: one read, two writes that may be repeated with the same arguments."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, Field

from agentic.contract.errors import NotFound
from agentic.contract.results import ErrorCode
from agentic.contract.trust import Trust
from agentic.local.demo import crm
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.storage.pool import Pool

_WORDS = r"\S"


class PeopleQuery(BaseModel):
    """Arguments of ``crm.search_people``."""

    query: str = Field(
        max_length=200, description="Words of a name, email, job title, company or place; all must occur."
    )
    limit: int = Field(default=10, ge=1, le=50, description="People at most.")


class FoundPerson(BaseModel):
    """One person, as the CRM knows them. ``notes`` is what somebody outside may have written."""

    id: UUID
    name: str
    email: str | None
    job_title: str | None
    company: str | None
    company_domain: str | None
    city: str | None
    country: str | None
    notes: str | None


class PeopleFound(BaseModel):
    """Result of ``crm.search_people``."""

    people: list[FoundPerson]


class CompanyFacts(BaseModel):
    """Arguments of ``crm.upsert_company``."""

    name: str = Field(min_length=1, max_length=200, pattern=_WORDS)
    domain: str | None = Field(default=None, max_length=200, description="Such as fjord.example.")
    industry: str | None = Field(default=None, max_length=100)
    city: str | None = Field(default=None, max_length=100)
    country: str | None = Field(default=None, max_length=100)


class CompanySaved(BaseModel):
    """Result of ``crm.upsert_company``."""

    company_id: UUID
    created: bool


class ListEntry(BaseModel):
    """Arguments of ``crm.add_to_list``."""

    list_name: str = Field(min_length=1, max_length=100, pattern=_WORDS)
    person_id: UUID = Field(description="The id of a person that a search found.")


class ListEntrySaved(BaseModel):
    """Result of ``crm.add_to_list``."""

    list_name: str
    added: bool
    """``False``: the person was on the list already."""


def crm_tools(pool: Pool) -> Sequence[Tool]:
    """The tools, over the database of this pool."""

    @internal_tool(
        "crm.search_people",
        "Find people in the CRM. Returns their ids, which other tools take.",
        output_trust=Trust.EXTERNAL,  # notes and names come from imports and web forms
    )
    async def search_people(ctx: CallContext, args: PeopleQuery) -> PeopleFound:
        found = await crm.search_people(pool, ctx.organization_id, args.query, args.limit)
        return PeopleFound(people=[FoundPerson.model_validate(person, from_attributes=True) for person in found])

    @internal_tool(
        "crm.upsert_company",
        "Make sure a company is in the CRM, with what is known of it. Finds it by its domain, else by its name.",
        side_effects="write",
        idempotency="idempotent",
        risk="low",
        repeatable=False,
    )
    async def upsert_company(ctx: CallContext, args: CompanyFacts) -> CompanySaved:
        company_id, created = await crm.upsert_company(
            pool,
            ctx.organization_id,
            args.name,
            args.domain,
            industry=args.industry,
            city=args.city,
            country=args.country,
        )
        return CompanySaved(company_id=company_id, created=created)

    @internal_tool(
        "crm.add_to_list",
        "Put a person on a list; the list is made when it does not exist.",
        side_effects="write",
        idempotency="idempotent",
        risk="low",
        repeatable=False,
        refusals={NotFound: ErrorCode.NOT_FOUND},
    )
    async def add_to_list(ctx: CallContext, args: ListEntry) -> ListEntrySaved:
        added = await crm.add_to_list(pool, ctx.organization_id, args.list_name, args.person_id)
        return ListEntrySaved(list_name=args.list_name, added=added)

    return search_people, upsert_company, add_to_list
