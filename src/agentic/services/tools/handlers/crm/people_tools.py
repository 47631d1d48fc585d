"""``crm.search_people``, ``crm.get_person``, ``crm.upsert_person`` and ``crm.delete_person``."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.crm import people
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
from agentic.services.tools.handlers.crm.facts import PersonFacts
from agentic.services.tools.scoped_db import ScopedDatabase


class PeopleSearch(BaseModel):
    """Arguments of ``crm.search_people``."""

    query: Query = Field(description="Words of a name, email, job title, company or place; all must occur.")
    company_id: UUID | None = Field(default=None, description="Only people of this company.")
    limit: Limit = Field(default=10, description="People at most.")


class WhichPerson(BaseModel):
    """Arguments that name one person."""

    person_id: UUID = Field(description="The id of a person that a search found.")


class FoundPerson(BaseModel):
    """One person of a search. ``notes`` is their beginning."""

    id: str
    name: str
    email: str | None
    job_title: str | None
    company: str | None
    company_domain: str | None
    city: str | None
    country: str | None
    notes: str | None


class WholePerson(FoundPerson):
    """One person with everything that is known of them."""

    company_id: str | None
    phone: str | None
    linkedin_url: str | None
    created_at: str
    updated_at: str


def people_tools(db: ScopedDatabase) -> list[Tool]:
    """The tools."""

    @read(
        "crm.search_people",
        "Find people in the CRM. Returns their ids, which other tools take.",
        max_results=MAX_RESULTS,
        item_kind="crm.person",
    )
    async def search_people(ctx: CallContext, args: PeopleSearch) -> list[FoundPerson]:
        rows = await people.search_people(
            db.of(ctx.organization_id), args.query, limit=args.limit, company_id=args.company_id
        )
        return [found(row) for row in rows]

    @read("crm.get_person", "Read everything the CRM knows of one person.")
    async def get_person(ctx: CallContext, args: WhichPerson) -> WholePerson:
        return WholePerson.model_validate(await people.get_person(db.of(ctx.organization_id), args.person_id))

    @write(
        "crm.upsert_person",
        "Make sure a person is in the CRM, with what is known of them. Finds them by their email, else by their name within the "
        "company; what is left out stays as it is.",
    )
    async def upsert_person(ctx: CallContext, args: PersonFacts) -> Upserted:
        saved = await people.upsert_person(db.of(ctx.organization_id), args)
        return Upserted(id=saved.id, created=saved.created, changed=list(saved.changed))

    async def whom(ctx: CallContext, args: WhichPerson) -> str:
        row = await people.get_person(db.of(ctx.organization_id), args.person_id)
        return f"the person {row['name']}" + (f" <{row['email']}>" if row["email"] else "")

    @write(
        "crm.delete_person",
        "Take a person out of the CRM and off every list.",
        risk="high",
        approval_preview=True,
        preview=whom,
    )
    async def delete_person(ctx: CallContext, args: WhichPerson) -> Hidden:
        deleted = await people.delete_person(db.of(ctx.organization_id), args.person_id)
        return Hidden(id=str(args.person_id), deleted=deleted)

    return [search_people, get_person, upsert_person, delete_person]


def found(row: Mapping[str, Any]) -> FoundPerson:
    """A person as one of many."""
    return FoundPerson.model_validate({**row, "notes": beginning(row["notes"])})
