"""The tables of one organization, and the only way for a handler to reach them (T1).

Whatever is asked, the organization is in it: a row of another one is neither found nor changed, and its id looks like one that
does not exist. The rules of asking are here, once; how it is asked over SQL or over PostgREST is the adapters'.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol
from uuid import UUID

from agentic.contract.errors import Conflict, ProgramFault
from agentic.services.tools.scoped_checks import (
    checked_columns,
    checked_filters,
    checked_order,
    checked_rows,
    checked_values,
)
from agentic.services.tools.scoped_queries import (
    Delete,
    Filter,
    Insert,
    Order,
    Query,
    Row,
    Select,
    Update,
    Upsert,
)
from agentic.services.tools.scoped_tables import Tables

MAX_ROWS: Final = 1000
"""Rows of one read or one write at most; hosted PostgREST silently returns no more by default."""


class KeyTaken(Conflict):
    """A row with the same key is there already. ``constraint`` names the rule, as the migrations do."""

    def __init__(self, table: str, constraint: str) -> None:
        super().__init__(
            f"{table} has a row with this key already ({constraint}); read it, or write with upsert in place of insert"
        )
        self.constraint = constraint


class ReferenceMissing(Conflict):
    """A row refers to one that is not there in this organization, or is referred to by one that is."""

    def __init__(self, table: str, constraint: str) -> None:
        super().__init__(
            f"{table}: a row refers to one that does not exist in this organization, or is still referred to ({constraint})"
        )
        self.constraint = constraint


class ScopedRows(Protocol):
    """Where the rows are. Implemented by the adapters and asked by ``ScopedDb`` alone."""

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        """What the query gives or leaves, within the organization.

        Raises:
            KeyTaken: a unique key is there already.
            ReferenceMissing: a reference leads nowhere.
            ProgramFault: the database refuses the values or knows no such table or key.
            StorageUnavailable: it did not answer, or gave up in favour of somebody else.
        """
        ...


class ScopedDatabase(Protocol):
    """What a product's tools are made with; ``App(scoped_tools=…)`` hands it to them."""

    def of(self, organization_id: UUID) -> "ScopedDb":
        """The tables of one organization: in a handler, ``db.of(ctx.organization_id)``."""
        ...


class ScopedDatabaseOver:
    """Implements ``ScopedDatabase`` over whatever holds the rows.

    Args:
        rows: where they are.
        tables: which tables and columns there are.
    """

    __slots__ = ("_rows", "_tables")

    def __init__(self, rows: ScopedRows, *, tables: Tables) -> None:
        self._rows = rows
        self._tables = tables

    def of(self, organization_id: UUID) -> "ScopedDb":
        """The tables of one organization."""
        return ScopedDb(organization_id, tables=self._tables, rows=self._rows)


class ScopedDb:
    """The tables of one organization.

    Names that are not in ``tables``, values without a column form, and ``organization_id`` in any place are refused with
    ``ProgramFault`` before anything is asked. What the database answers is raised as ``ScopedRows.run`` says.

    Args:
        organization_id: whose rows there are.
        tables: which tables and columns there are.
        rows: where they are.
    """

    __slots__ = ("_organization_id", "_rows", "_tables")

    def __init__(self, organization_id: UUID, *, tables: Tables, rows: ScopedRows) -> None:
        self._organization_id = organization_id
        self._tables = tables
        self._rows = rows

    async def select(
        self,
        table: str,
        columns: Sequence[str],
        *,
        where: Sequence[Filter] = (),
        order: Sequence[Order] = (),
        limit: int,
        offset: int = 0,
    ) -> list[Row]:
        """The rows that meet every condition.

        Args:
            table: one of the tables.
            columns: what comes back of each row.
            where: conditions that all hold.
            order: by the first, among equals by the next; without any, as the database likes.
            limit: rows at most, 1 to 1000.
            offset: rows to pass over.
        """
        known = self._columns(table)
        if not 1 <= limit <= MAX_ROWS or offset < 0:
            raise ProgramFault(f"{table}: a read asks for 1 to {MAX_ROWS} rows and passes over none or more")
        return await self._rows.run(
            self._organization_id,
            Select(
                table=table,
                columns=checked_columns(table, known, columns),
                where=checked_filters(table, known, where),
                order=checked_order(table, known, order),
                limit=limit,
                offset=offset,
            ),
        )

    async def insert(self, table: str, rows: Sequence[Mapping[str, object]], *, returning: Sequence[str]) -> list[Row]:
        """Write new rows, all of them or none.

        Args:
            table: one of the tables.
            rows: 1 to 1000, all with the same columns; a value is a scalar of JSON, a UUID, a moment, a Decimal, or a list of texts.
            returning: what comes back of each row, in the order of ``rows``.
        """
        known = self._columns(table)
        return await self._rows.run(
            self._organization_id,
            Insert(
                table=table,
                rows=checked_rows(table, known, rows, at_most=MAX_ROWS),
                returning=checked_columns(table, known, returning),
            ),
        )

    async def upsert(
        self,
        table: str,
        rows: Sequence[Mapping[str, object]],
        *,
        on: Sequence[str],
        returning: Sequence[str],
        existing: Literal["update", "keep"] = "update",
    ) -> list[Row]:
        """Write rows, all of them or none; one that is there already is updated or kept.

        Args:
            table: one of the tables.
            rows: as for ``insert``; no two with the same key. An ``id`` belongs in them only where ``on`` names it, so that no row
                that exists is given another.
            on: the columns of a unique key, without ``organization_id``.
            returning: what comes back of each row that was written.
            existing: ``update`` sets the columns given; ``keep`` leaves the row alone, and it does not come back.
        """
        known = self._columns(table)
        key = checked_columns(table, known, on)
        given = checked_rows(table, known, rows, at_most=MAX_ROWS)
        if "id" in given[0] and "id" not in key:
            raise ProgramFault(f"{table}: an upsert by {', '.join(key)} would give a row that exists another id")
        return await self._rows.run(
            self._organization_id,
            Upsert(
                table=table,
                rows=given,
                on=key,
                existing=existing,
                returning=checked_columns(table, known, returning),
            ),
        )

    async def update(
        self, table: str, values: Mapping[str, object], *, where: Sequence[Filter], returning: Sequence[str]
    ) -> list[Row]:
        """Set columns of every row that meets the conditions.

        Args:
            table: one of the tables.
            values: at least one.
            where: at least one condition.
            returning: what comes back of each row that was changed.
        """
        known = self._columns(table)
        return await self._rows.run(
            self._organization_id,
            Update(
                table=table,
                values=checked_values(table, known, values),
                where=_at_least_one(table, checked_filters(table, known, where)),
                returning=checked_columns(table, known, returning),
            ),
        )

    async def delete(self, table: str, *, where: Sequence[Filter], returning: Sequence[str]) -> list[Row]:
        """Remove every row that meets the conditions.

        Args:
            table: one of the tables.
            where: at least one condition.
            returning: what comes back of each row that is gone.
        """
        known = self._columns(table)
        return await self._rows.run(
            self._organization_id,
            Delete(
                table=table,
                where=_at_least_one(table, checked_filters(table, known, where)),
                returning=checked_columns(table, known, returning),
            ),
        )

    def _columns(self, table: str) -> frozenset[str]:
        if table not in self._tables:
            raise ProgramFault(
                f"{table!r} is no table of organizations that tools may reach; there are {', '.join(sorted(self._tables))}. "
                "Declare your own with App(scoped_tables=…)"
            )
        return self._tables[table]


def _at_least_one(table: str, where: tuple[Filter, ...]) -> tuple[Filter, ...]:
    if not where:
        raise ProgramFault(f"{table}: an update or a delete says which rows it means")
    return where
