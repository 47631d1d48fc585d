"""A table whose rows belong to no organization, such as facts of the world: a store of its own, named where it is made.

It is the one exception to ``scoped_db``, so it takes only a table that cannot hold an organization's row and that no user's key
reaches. A handler gets a store made for its table and never what stands under it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from agentic.contract.errors import ProgramFault
from agentic.services.tools.scoped_checks import (
    ORGANIZATION,
    checked_columns,
    checked_filters,
    checked_order,
    checked_rows,
)
from agentic.services.tools.scoped_db import MAX_ROWS
from agentic.services.tools.scoped_queries import Filter, Order, Row, Select, Upsert
from agentic.storage.database import Database
from agentic.storage.queries import load_queries
from agentic.storage.scoped_psycopg import PostgresTables


class GlobalStore:
    """Reads and writes of one table; made by ``opened``."""

    def __init__(self, tables: PostgresTables, *, table: str, columns: frozenset[str]) -> None:
        self._tables = tables
        self._table = table
        self._columns = columns

    @classmethod
    async def opened(cls, database: Database, *, table: str, columns: frozenset[str]) -> Self:
        """A store of this table, once the database has shown that it may be one.

        Args:
            database: connected as a member of ``service_role``.
            table: in schema ``public``.
            columns: those that may be named.

        Raises:
            ProgramFault: there is no such table or column, it has an ``organization_id``, or a user's key reaches it.
            StorageUnavailable: the database did not answer.
        """
        found = await database.one(load_queries("scoped")["table_of_nobody"], {"table": table})
        if found is None or not columns <= set(found["columns"]):
            raise ProgramFault(f"{table}: there is no such table with the columns {', '.join(sorted(columns))}")
        if ORGANIZATION in found["columns"]:
            raise ProgramFault(f"{table} holds rows of organizations; reach it through scoped_db")
        if not found["secured"] or found["open_to_users"]:
            raise ProgramFault(
                f"{table}: a table of nobody has row level security and no right for anon or authenticated; a migration "
                "enables the one and revokes the other"
            )
        return cls(PostgresTables(database), table=table, columns=columns)

    async def select(
        self,
        columns: Sequence[str],
        *,
        where: Sequence[Filter] = (),
        order: Sequence[Order] = (),
        limit: int,
        offset: int = 0,
    ) -> list[Row]:
        """The rows that meet every condition; arguments and errors as ``ScopedDb.select``."""
        if not 1 <= limit <= MAX_ROWS or offset < 0:
            raise ProgramFault(f"{self._table}: a read asks for 1 to {MAX_ROWS} rows and passes over none or more")
        query = Select(
            table=self._table,
            columns=checked_columns(self._table, self._columns, columns),
            where=checked_filters(self._table, self._columns, where),
            order=checked_order(self._table, self._columns, order),
            limit=limit,
            offset=offset,
        )
        return await self._tables.ask(query, fixed={})

    async def upsert(
        self,
        rows: Sequence[Mapping[str, object]],
        *,
        on: Sequence[str],
        returning: Sequence[str],
        existing: Literal["update", "keep"] = "update",
    ) -> list[Row]:
        """Write rows, none of which names an organization; arguments and errors as ``ScopedDb.upsert``."""
        query = Upsert(
            table=self._table,
            rows=checked_rows(self._table, self._columns, rows, at_most=MAX_ROWS),
            on=checked_columns(self._table, self._columns, on),
            existing=existing,
            returning=checked_columns(self._table, self._columns, returning),
        )
        return await self._tables.ask(query, fixed={})
