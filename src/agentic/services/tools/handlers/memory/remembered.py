"""What an organization's agents have noticed and been told, one text a subject, kind and key. No answer holds a forgotten one.

The label of a text is that of what it came from. It is kept with the text and given back with it: storing raises nothing (ADR 0012).
"""

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.contract.trust import Trust
from agentic.services.tools.handlers.crm.companies import get_company
from agentic.services.tools.handlers.crm.keyed import ATTEMPTS, DATABASE_NOW
from agentic.services.tools.handlers.crm.people import get_person
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.scoped_db import ScopedDb
from agentic.services.tools.scoped_queries import Contains, Eq, Filter, IsNull, Order, Row

MEMORIES: Final = "agent_memories"
COLUMNS: Final = ("id", "kind", "key", "text", "source", "trust", "updated_at")
"""What is shown of a memory."""
Kind = Literal["observation", "preference"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Whom something is remembered about.

    Attributes:
        kind: ``user`` is the person the run acts for.
        ref: their id.
    """

    kind: Literal["person", "company", "user"]
    ref: UUID

    @property
    def filters(self) -> list[Filter]:
        """What finds the memories about them that are not forgotten."""
        return [Eq("subject_kind", self.kind), Eq("subject_ref", str(self.ref)), IsNull("deleted_at")]


async def require(db: ScopedDb, subject: Subject) -> None:
    """Check that a person or a company of the CRM is there.

    Raises:
        NotFound: it is not.
    """
    if subject.kind == "person":
        await get_person(db, subject.ref)
    elif subject.kind == "company":
        await get_company(db, subject.ref)


async def remember(
    db: ScopedDb, subject: Subject, kind: Kind, key: str, *, text: str, source: str | None, trust: Trust
) -> tuple[str, bool]:
    """Keep a text in the place of what was kept under the key; its id, and whether anything is different now.

    Raises:
        RetryableUpstreamError: others kept forgetting and keeping the same thing.
    """
    said = {"text": text, "source": source, "trust": str(trust)}
    place = {"subject_kind": subject.kind, "subject_ref": str(subject.ref), "kind": kind}
    for _ in range(ATTEMPTS):
        made = await db.upsert(
            MEMORIES, [{**place, "key": key, **said}], on=[*place, "live_key"], existing="keep", returning=["id"]
        )
        if made:
            return str(made[0]["id"]), True
        there = [*subject.filters, Eq("kind", kind), Eq("live_key", key)]
        for row in await db.select(MEMORIES, COLUMNS, where=there, limit=1):
            if all(row[column] == value for column, value in said.items()):
                return str(row["id"]), False
            where: list[Filter] = [Eq("id", str(row["id"])), IsNull("deleted_at")]
            if await db.update(MEMORIES, said, where=where, returning=["id"]):
                return str(row["id"]), True
    raise RetryableUpstreamError("others keep forgetting and keeping the same thing; the same call may be made again")


async def recall(db: ScopedDb, subject: Subject, *, kind: Kind | None, query: str, limit: int) -> list[Row]:
    """What is kept about somebody, of a kind, in whose text every word occurs; what changed last comes first."""
    where = [*subject.filters, *(Contains("text", word) for word in query.split())]
    if kind is not None:
        where.append(Eq("kind", kind))
    order = [Order("updated_at", descending=True), Order("id")]
    return await db.select(MEMORIES, COLUMNS, where=where, order=order, limit=limit)


async def forget(db: ScopedDb, memory_id: UUID, *, user_id: UUID | None) -> bool:
    """Hide a memory from every answer. ``False`` when it was hidden already.

    Args:
        user_id: the person the run acts for; what is kept about another person of the organization looks missing.

    Raises:
        NotFound: there never was one of this id.
    """
    rows = await db.select(
        MEMORIES, ["subject_kind", "subject_ref", "deleted_at"], where=[Eq("id", memory_id)], limit=1
    )
    if not rows or (rows[0]["subject_kind"] == "user" and rows[0]["subject_ref"] != str(user_id)):
        raise NotFound(f"there is no memory {memory_id}; recall, and use an id that comes back")
    where: list[Filter] = [Eq("id", memory_id), IsNull("deleted_at")]
    return bool(await db.update(MEMORIES, {"deleted_at": DATABASE_NOW}, where=where, returning=["id"]))
