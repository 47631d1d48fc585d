"""What is done alike with each kind of record of the CRM: searching, reading and hiding. A deleted row is found by nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm.canonical import fold, one_line
from agentic.services.tools.handlers.crm.keyed import DATABASE_NOW
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Contains, Eq, Filter, In, IsNull, Order, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """What tells one kind of record from another.

    Attributes:
        table: where its rows are.
        one: what one of them is called.
        many: what several are called.
        columns: what is shown of one, and nothing else is.
        searched: the column in which a search looks for its words.
    """

    table: str
    one: str
    many: str
    columns: tuple[str, ...]
    searched: str = "search_text"


async def search(db: ScopedDb, kind: Kind, query: str, *, limit: int, where: Sequence[Filter] = ()) -> list[Row]:
    """Records in which every word of the query occurs, all of them for a blank one; the oldest first."""
    words = (Contains(kind.searched, word) for word in dict.fromkeys(fold(one_line(query)).split()))
    live = [*words, IsNull("deleted_at"), *where]
    return await db.select(kind.table, kind.columns, where=live, order=[Order("created_at"), Order("id")], limit=limit)


async def get(db: ScopedDb, kind: Kind, id: UUID | str) -> Row:
    """One record.

    Raises:
        NotFound: there is none of this id, or it was deleted.
    """
    rows = await db.select(kind.table, kind.columns, where=[Eq("id", str(id)), IsNull("deleted_at")], limit=1)
    if not rows:
        raise NotFound(f"there is no {kind.one} {id}; search for {kind.many} and use an id that comes back")
    return rows[0]


async def several(db: ScopedDb, kind: Kind, ids: Sequence[str], columns: Sequence[str] | None = None) -> dict[str, Row]:
    """Those that are there, by id and in the order of their ids here; at most 50 are asked for.

    Args:
        db: whose.
        kind: of what.
        ids: which; one that occurs twice is asked for once.
        columns: what is read of each, the id among it; everything that is shown unless said otherwise.
    """
    if not ids:
        return {}
    unique = tuple(dict.fromkeys(ids))
    where: list[Filter] = [In("id", unique), IsNull("deleted_at")]
    rows = await db.select(kind.table, columns or kind.columns, where=where, limit=len(unique))
    there = {str(row["id"]): row for row in rows}
    return {id: there[id] for id in unique if id in there}


async def hide(db: ScopedDb, kind: Kind, id: UUID) -> bool:
    """Mark a record as deleted; ``False`` when it was already.

    Raises:
        NotFound: there never was one of this id.
    """
    if await db.update(
        kind.table, {"deleted_at": DATABASE_NOW}, where=[Eq("id", id), IsNull("deleted_at")], returning=["id"]
    ):
        return True
    if not await db.select(kind.table, ["id"], where=[Eq("id", id)], limit=1):
        raise NotFound(f"there is no {kind.one} {id}; search, and use an id that comes back")
    return False
