"""Lists of people: made once a name, each person on one once. No answer holds a deleted list or person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.crm.keyed import ATTEMPTS
from agentic.services.tools.handlers.crm.people import people_of
from agentic.services.tools.handlers.crm.records import Kind, get, search
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Eq, Filter, In, Order, Row

LIST: Final = Kind(
    table="crm_lists", one="list", many="lists", columns=("id", "name", "created_at"), searched="name_key"
)
MEMBERS: Final = "crm_list_members"


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Some of the people of a list, in the order they came; ``more`` says that others follow."""

    people: Sequence[Row]
    more: bool


async def search_lists(db: ScopedDb, query: str, *, limit: int) -> list[Row]:
    """Lists in whose name every word occurs, the oldest first."""
    return await search(db, LIST, query, limit=limit)


async def get_list(db: ScopedDb, list_id: UUID) -> Row:
    """One list.

    Raises:
        NotFound: there is none of this id, or it was deleted.
    """
    return await get(db, LIST, list_id)


async def page(db: ScopedDb, list_id: UUID, *, limit: int, offset: int) -> Page:
    """The people of a list; a page is shorter by those who were deleted."""
    entries = await db.select(
        MEMBERS,
        ["person_id"],
        where=[Eq("list_id", list_id)],
        order=[Order("added_at"), Order("person_id")],
        limit=limit + 1,
        offset=offset,
    )
    people = await people_of(db, [str(entry["person_id"]) for entry in entries[:limit]])
    return Page(people=people, more=len(entries) > limit)


async def create_list(db: ScopedDb, name: str) -> tuple[Row, bool]:
    """Find or make the list of a name, and whether it is new; names that differ in case and accents alone are one.

    Raises:
        RetryableUpstreamError: others kept making and deleting it.
    """
    key = fold(name)
    for _ in range(ATTEMPTS):
        made = await db.upsert(
            LIST.table, [{"name": name, "name_key": key}], on=["live_name_key"], existing="keep", returning=LIST.columns
        )
        found = made or await db.select(LIST.table, LIST.columns, where=[Eq("live_name_key", key)], limit=1)
        if found:
            return found[0], bool(made)
    raise RetryableUpstreamError("others keep making and deleting a list of this name; the same call may be made again")


async def list_named(db: ScopedDb, name: str) -> Row:
    """The list of a name.

    Raises:
        NotFound: nobody made it.
    """
    found = await db.select(LIST.table, LIST.columns, where=[Eq("live_name_key", fold(name))], limit=1)
    if not found:
        raise NotFound("there is no list of this name; search for lists and use a name that comes back")
    return found[0]


async def add(db: ScopedDb, list_name: str, person_ids: Sequence[UUID]) -> tuple[Row, list[str]]:
    """Put people on a list, which is made when nobody made it; the list, and who was not on it before.

    Raises:
        NotFound: one of them is not there; nobody was put on the list, and it was not made.
        ReferenceMissing: one was erased while this ran.
    """
    ids = [str(id) for id in dict.fromkeys(person_ids)]
    there = {str(row["id"]) for row in await people_of(db, ids)}
    missing = [id for id in ids if id not in there]
    if missing:
        raise NotFound(f"there is no person {', '.join(missing)}; search for people and use ids that come back")
    row, _ = await create_list(db, list_name)
    entries = [{"list_id": row["id"], "person_id": id} for id in ids]
    added = await db.upsert(MEMBERS, entries, on=["list_id", "person_id"], existing="keep", returning=["person_id"])
    return row, [str(entry["person_id"]) for entry in added]


async def remove(db: ScopedDb, list_name: str, person_ids: Sequence[UUID]) -> tuple[Row, list[str]]:
    """Take people off a list; the list, and who was on it.

    Raises:
        NotFound: there is no such list.
    """
    row = await list_named(db, list_name)
    where: list[Filter] = [Eq("list_id", str(row["id"])), In("person_id", tuple(dict.fromkeys(person_ids)))]
    removed = await db.delete(MEMBERS, where=where, returning=["person_id"])
    return row, [str(entry["person_id"]) for entry in removed]
