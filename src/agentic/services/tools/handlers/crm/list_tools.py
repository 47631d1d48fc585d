"""``crm.search_lists``, ``crm.get_list``, ``crm.create_list``, ``crm.add_to_list`` and ``crm.remove_from_list``."""

from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from agentic.contract.errors import NotFound
from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.handlers.crm import lists
from agentic.services.tools.handlers.crm.declaring import MAX_BATCH, MAX_RESULTS, Limit, Query, read, write
from agentic.services.tools.handlers.crm.facts import ListName
from agentic.services.tools.handlers.crm.people_tools import FoundPerson, found
from agentic.services.tools.scoped_db import ReferenceMissing, ScopedDatabase

_PersonIds = Annotated[list[UUID], Field(min_length=1, description="Ids of people that a search found.")]


class ListSearch(BaseModel):
    """Arguments of ``crm.search_lists``."""

    query: Query = Field(description="Words of a name; all must occur.")
    limit: Limit = Field(default=10, description="Lists at most.")


class WhichList(BaseModel):
    """Arguments of ``crm.get_list``."""

    list_id: UUID = Field(description="The id of a list that a search found.")
    limit: Limit = Field(default=20, description="People at most.")
    offset: int = Field(default=0, ge=0, le=100_000, description="How many of its people to pass over.")


class ListNamed(BaseModel):
    """Arguments of ``crm.create_list``."""

    name: ListName


class ListEntries(BaseModel):
    """Arguments of ``crm.add_to_list`` and ``crm.remove_from_list``."""

    list_name: ListName
    person_ids: _PersonIds


class FoundList(BaseModel):
    """One list."""

    id: str
    name: str
    created_at: str


class WholeList(FoundList):
    """One list with some of its people, in the order they came. ``more`` says that others follow."""

    people: list[FoundPerson]
    more: bool


class ListMade(BaseModel):
    """What became of ``crm.create_list``; ``created`` is false for a list that was there."""

    id: str
    created: bool


class ListChanged(BaseModel):
    """Whom a call put on a list or took off it; the others of its arguments were where they belong already."""

    list_id: str
    changed: list[str]


def list_tools(db: ScopedDatabase) -> list[Tool]:
    """The tools."""

    @read(
        "crm.search_lists",
        "Find lists of people in the CRM.",
        max_results=MAX_RESULTS,
        item_kind="crm.list",
    )
    async def search_lists(ctx: CallContext, args: ListSearch) -> list[FoundList]:
        rows = await lists.search_lists(db.of(ctx.organization_id), args.query, limit=args.limit)
        return [FoundList.model_validate(row) for row in rows]

    @read("crm.get_list", "Read a list of the CRM with its people, in the order they were put on it.")
    async def get_list(ctx: CallContext, args: WhichList) -> WholeList:
        scoped = db.of(ctx.organization_id)
        row = await lists.get_list(scoped, args.list_id)
        page = await lists.page(scoped, args.list_id, limit=args.limit, offset=args.offset)
        return WholeList.model_validate({**row, "people": [found(person) for person in page.people], "more": page.more})

    @write("crm.create_list", "Make sure there is a list of this name in the CRM.")
    async def create_list(ctx: CallContext, args: ListNamed) -> ListMade:
        row, created = await lists.create_list(db.of(ctx.organization_id), args.name)
        return ListMade(id=str(row["id"]), created=created)

    @write(
        "crm.add_to_list",
        "Put people on a list; the list is made when it does not exist.",
        refusals={NotFound: ErrorCode.NOT_FOUND, ReferenceMissing: ErrorCode.NOT_FOUND},
        batch_argument="person_ids",
        max_batch_size=MAX_BATCH,
    )
    async def add_to_list(ctx: CallContext, args: ListEntries) -> ListChanged:
        row, added = await lists.add(db.of(ctx.organization_id), args.list_name, args.person_ids)
        return ListChanged(list_id=str(row["id"]), changed=added)

    @write(
        "crm.remove_from_list",
        "Take people off a list.",
        batch_argument="person_ids",
        max_batch_size=MAX_BATCH,
    )
    async def remove_from_list(ctx: CallContext, args: ListEntries) -> ListChanged:
        row, removed = await lists.remove(db.of(ctx.organization_id), args.list_name, args.person_ids)
        return ListChanged(list_id=str(row["id"]), changed=removed)

    return [search_lists, get_list, create_list, add_to_list, remove_from_list]
