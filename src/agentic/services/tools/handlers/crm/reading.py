"""What reading and hiding have in common, whichever table of the CRM it is: a deleted row is found by nobody."""

from collections.abc import Sequence
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm.canonical import fold, one_line
from agentic.services.tools.handlers.crm.keyed import DATABASE_NOW
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Contains, Eq, Filter, IsNull, Row


def words(query: str) -> list[Filter]:
    """Conditions that every word of a query occurs in the text that is searched; none for a blank one."""
    return [Contains("search_text", word) for word in dict.fromkeys(fold(one_line(query)).split())]


async def one(db: ScopedDb, table: str, columns: Sequence[str], id: UUID | str) -> Row | None:
    """The row of an id, unless it is deleted."""
    rows = await db.select(table, columns, where=[Eq("id", str(id)), IsNull("deleted_at")], limit=1)
    return rows[0] if rows else None


async def delete(db: ScopedDb, table: str, id: UUID, *, called: str) -> bool:
    """Mark a row as deleted; ``False`` when it was already.

    Raises:
        NotFound: there never was one.
    """
    if await db.update(
        table, {"deleted_at": DATABASE_NOW}, where=[Eq("id", id), IsNull("deleted_at")], returning=["id"]
    ):
        return True
    if not await db.select(table, ["id"], where=[Eq("id", id)], limit=1):
        raise NotFound(f"there is no {called} {id}; search, and use an id that comes back")
    return False
