"""Find or make the one row of a key, where a row has two: a sure one that may come later, and a weak one.

A company is surely its domain and otherwise its name; a person is surely an address and otherwise a name within a company. Each verb
is a statement of its own, so what holds between two of them is held by the tables' unique rules: the weak key is one among rows
whose sure key is not known.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agentic.services.tools.handlers.crm.canonical import fold
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.scoped_db import KeyTaken, ScopedDb
from agentic.services.tools.scoped_queries import Eq, Filter, IsNull, NotNull, Order, Row

DATABASE_NOW: Final = "now"
"""Postgres reads this text as the moment of the statement, by its own clock."""
ATTEMPTS: Final = 20
"""Each lost one means that somebody else's write of the same row got through."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """What became of an upsert.

    Attributes:
        id: of the row.
        created: there was none before.
        changed: the columns that have another value now, keys left aside; of a new row, those that have one.
    """

    id: str
    created: bool
    changed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyedRow:
    """A row as it is wanted.

    Attributes:
        table: where.
        sure: the fact that is the sure key; ``<sure>_key`` is the column of the key.
        name: what it is called.
        renames: a row that goes by another name takes this one; otherwise it keeps the name it was made with.
        within: what a name tells apart within, by column; ``None`` is a value like any other. With the name's key it is the weak key.
        facts: what is known, by column; a column that is not named keeps its value.
        columns: every column that facts may name.
        joins_known: the weak key is good enough to find a row of which more is known than of this one, and the other way round.
    """

    table: str
    sure: str
    name: str
    renames: bool
    within: Mapping[str, str | None]
    facts: Mapping[str, str]
    columns: tuple[str, ...]
    joins_known: bool

    @property
    def sure_column(self) -> str:
        """The column of the sure key."""
        return f"{self.sure}_key"

    @property
    def sure_key(self) -> str | None:
        """The value of the sure key."""
        return self.facts.get(self.sure)

    @property
    def names(self) -> Mapping[str, str]:
        """The name and its key."""
        return {"name": self.name, "name_key": fold(self.name)}

    @property
    def known(self) -> Mapping[str, str]:
        """The facts, and the sure key when they name it."""
        return self.facts if self.sure_key is None else {**self.facts, self.sure_column: self.sure_key}

    @property
    def weak_filters(self) -> tuple[Filter, ...]:
        """What finds the live rows of the weak key."""
        within = (IsNull(column) if value is None else Eq(column, value) for column, value in self.within.items())
        return (Eq("name_key", self.names["name_key"]), *within, IsNull("deleted_at"))


Searchable = Callable[[Mapping[str, Any]], Awaitable[str]]
"""The text that a search looks through, of a row as it is going to be."""


async def upsert(db: ScopedDb, wanted: KeyedRow, searchable: Searchable) -> Saved:
    """Bring the row of the key to what is wanted; repeated, it changes nothing.

    Raises:
        RetryableUpstreamError: others kept writing the same row.
    """
    made: set[str] = set()
    for _ in range(ATTEMPTS):
        row = await _found(db, wanted)
        saved = await (_made(db, wanted, searchable, made) if row is None else _brought(db, wanted, row, searchable))
        if saved is not None:
            return replace(saved, created=saved.id in made)
    raise RetryableUpstreamError(f"{wanted.table}: others keep writing the same row; the same call may be made again")


async def _found(db: ScopedDb, wanted: KeyedRow) -> Row | None:
    """The row of the sure key, else the oldest of the weak one: for a row with a sure key, only one that has none yet."""
    columns = ("id", "updated_at", "name", "name_key", wanted.sure_column, "search_text", *wanted.columns)
    if wanted.sure_key is not None:
        rows = await db.select(
            wanted.table, columns, where=[Eq(f"live_{wanted.sure_column}", wanted.sure_key)], limit=1
        )
        if rows or not wanted.joins_known:
            return rows[0] if rows else None
    among = () if wanted.sure_key is None and wanted.joins_known else (IsNull(wanted.sure_column),)
    where = [*wanted.weak_filters, *among]
    rows = await db.select(wanted.table, columns, where=where, order=[Order("created_at"), Order("id")], limit=1)
    return rows[0] if rows else None


async def _brought(db: ScopedDb, wanted: KeyedRow, row: Row, searchable: Searchable) -> Saved | None:
    """Set what differs; ``None`` when the row is not what was read any more, or the sure key is another row's by now."""
    renamed = wanted.renames and row["name_key"] != wanted.names["name_key"]  # another spelling is the same name
    known = {**wanted.known, **(wanted.names if renamed else {})}
    changed = {column: value for column, value in known.items() if row[column] != value}
    if changed:
        changed_text = await searchable({**row, **changed})
        values = changed if row["search_text"] == changed_text else {**changed, "search_text": changed_text}
        if not await _set(db, wanted, row, values):
            return None
    return Saved(id=str(row["id"]), created=False, changed=_shown(changed))


async def _made(db: ScopedDb, wanted: KeyedRow, searchable: Searchable, made: set[str]) -> Saved | None:
    """Make a row, whose id goes into ``made``; ``None`` when somebody else was first, or has changed it already.

    Where the weak key can find it, a row is made of that key alone and gets the sure key and all facts after: so whoever makes the
    same one without a sure key at this moment meets it, in one of the two ways. A process that dies in between leaves a row that the
    next upsert of either key finds and completes.
    """
    whole = {**wanted.within, **wanted.names, **wanted.known}
    by_weak_first = wanted.sure_key is not None and wanted.joins_known
    new = {**wanted.within, **wanted.names} if by_weak_first else whole
    try:
        (row,) = await db.insert(
            wanted.table, [{**new, "search_text": await searchable(new)}], returning=["id", "updated_at"]
        )
    except KeyTaken:
        return None
    made.add(str(row["id"]))
    if by_weak_first:
        stands = await _set(db, wanted, row, {**wanted.known, "search_text": await searchable(whole)})
        if stands is None:
            await _withdraw(db, wanted, row)
    else:
        stands = wanted.sure_key is not None or not await _came_late(db, wanted, row)
    changed = _shown(column for column, value in whole.items() if value is not None)
    return Saved(id=str(row["id"]), created=True, changed=changed) if stands else None


def _shown(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(column for column in columns if not column.endswith("_key")))


async def _set(db: ScopedDb, wanted: KeyedRow, row: Row, values: Mapping[str, Any]) -> bool | None:
    """Write a row if it is still what was read; ``None`` when another row has the sure key."""
    unchanged: list[Filter] = [Eq("id", str(row["id"])), Eq("updated_at", str(row["updated_at"])), IsNull("deleted_at")]
    try:
        return bool(await db.update(wanted.table, values, where=unchanged, returning=["id"]))
    except KeyTaken:
        return None


async def _came_late(db: ScopedDb, wanted: KeyedRow, row: Row) -> bool:
    """Whether a row of the weak key got its sure key just before this one was made; this one is withdrawn then."""
    if not wanted.joins_known:
        return False
    others = await db.select(wanted.table, ["id"], where=[*wanted.weak_filters, NotNull(wanted.sure_column)], limit=1)
    if others:
        await _withdraw(db, wanted, row)
    return bool(others)


async def _withdraw(db: ScopedDb, wanted: KeyedRow, row: Row) -> None:
    """Take back a row just made, unless somebody gave it a sure key meanwhile."""
    where: list[Filter] = [Eq("id", str(row["id"])), IsNull("deleted_at"), IsNull(wanted.sure_column)]
    await db.update(wanted.table, {"deleted_at": DATABASE_NOW}, where=where, returning=["id"])
