"""Tables of organizations over a connection to Postgres: a verb is one statement and one round trip.

It is asked as the interface of Supabase asks it: under the role and the claims of a token, which end with the transaction, and
with rows as JSON, so that what comes back is the same.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString, assert_never
from uuid import UUID

import psycopg
from psycopg import sql

from agentic.contract.json_types import JsonValue
from agentic.services.tools.scoped_queries import (
    Contains,
    Delete,
    Eq,
    Filter,
    Gt,
    Gte,
    In,
    Insert,
    IsNull,
    Lt,
    Lte,
    NotNull,
    Order,
    Query,
    Row,
    Select,
    Update,
    Upsert,
)
from agentic.storage.database import Database, WrittenFirst
from agentic.storage.queries import load_queries
from agentic.storage.scoped_refusals import refusal

SERVICE: Final[Mapping[str, JsonValue]] = {"role": "service_role"}
"""The claims of the service: it passes row level security, and filters itself."""
LITERAL: Final = "***="
"""Makes the rest of a regular expression plain characters."""

_QUERIES: Final = load_queries("scoped")


class PostgresRows:
    """Implements ``ScopedRows``.

    Args:
        database: connected as a member of the role.
        claims: those of the token that Supabase's interface would be given; ``role`` is whom the database takes it for.
    """

    def __init__(self, database: Database, *, claims: Mapping[str, JsonValue] = SERVICE) -> None:
        self._database = database
        self._settings = {"role": claims["role"], "claims": json.dumps(claims)}

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        """Run it; raises as the port says."""
        statement, params = _Statement(organization_id).of(query)
        try:
            rows = await self._database.all_under((_QUERIES["as_role"], self._settings), statement, params)
        except WrittenFirst as error:
            raise refusal(query.table, sqlstate="23505", constraint=error.constraint, message=None) from error
        except psycopg.Error as error:
            raise refusal(
                query.table,
                sqlstate=error.sqlstate,
                constraint=error.diag.constraint_name,
                message=error.diag.message_primary,
            ) from error
        return [row["row"] for row in rows]


class _Statement:
    """One statement and its values; the table is always ``t``, and names come from the checked query."""

    def __init__(self, organization_id: UUID) -> None:
        self._params: dict[str, Any] = {"organization": organization_id}

    def of(self, query: Query) -> tuple[sql.Composed, Mapping[str, Any]]:
        table = sql.Identifier("public", query.table)
        match query:
            case Select():
                statement = sql.SQL("select {} from {} t where {}{} limit {} offset {}").format(
                    _row(query.columns),
                    table,
                    self._where(query.where),
                    _order(query.order),
                    self._value(query.limit),
                    self._value(query.offset),
                )
            case Insert():
                statement = sql.SQL("{} returning {}").format(self._insert(table, query.rows), _row(query.returning))
            case Upsert():
                statement = sql.SQL("{} on conflict ({}) do {} returning {}").format(
                    self._insert(table, query.rows),
                    _names(["organization_id", *query.on]),
                    sql.SQL("nothing") if query.existing == "keep" else _set(query.rows[0], "excluded"),
                    _row(query.returning),
                )
            case Update():
                statement = sql.SQL(
                    "update {table} t {set} from json_populate_record(null::{table}, {given}::json) given where {where} returning {row}"
                ).format(
                    table=table,
                    set=_set(query.values, "given", verb="set"),
                    given=self._value(json.dumps(query.values)),
                    where=self._where(query.where),
                    row=_row(query.returning),
                )
            case Delete():
                statement = sql.SQL("delete from {} t where {} returning {}").format(
                    table, self._where(query.where), _row(query.returning)
                )
            case _:
                assert_never(query)
        return statement, self._params

    def _insert(self, table: sql.Identifier, rows: Sequence[Mapping[str, JsonValue]]) -> sql.Composed:
        columns = list(rows[0])
        return sql.SQL(
            "insert into {table} as t (organization_id, {columns}) select %(organization)s, {given} "
            "from json_populate_recordset(null::{table}, {rows}::json) given"
        ).format(
            table=table,
            columns=_names(columns),
            given=_names(columns, of="given"),
            rows=self._value(json.dumps([dict(row) for row in rows])),
        )

    def _where(self, where: Sequence[Filter]) -> sql.Composed:
        organization = sql.SQL("t.organization_id = %(organization)s")
        return sql.SQL(" and ").join([organization, *(self._condition(condition) for condition in where)])

    def _condition(self, condition: Filter) -> sql.Composed:
        column = sql.Identifier("t", condition.column)
        match condition:
            case IsNull():
                return sql.SQL("{} is null").format(column)
            case NotNull():
                return sql.SQL("{} is not null").format(column)
            case In():
                # a list of none is no SQL
                values: list[sql.Composable] = [self._value(value) for value in condition.values] or [sql.NULL]
                return sql.SQL("{} in ({})").format(column, sql.SQL(", ").join(values))
            case Contains():
                return sql.SQL("{} ~* {}").format(column, self._value(LITERAL + condition.text))
            case Eq() | Lt() | Lte() | Gt() | Gte():
                return sql.SQL("{} {} {}").format(
                    column, sql.SQL(_OPERATORS[type(condition)]), self._value(condition.value)
                )
            case _:
                assert_never(condition)

    def _value(self, value: object) -> sql.Placeholder:
        name = f"p{len(self._params)}"
        self._params[name] = value
        return sql.Placeholder(name)


_OPERATORS: Final[Mapping[type, LiteralString]] = {Eq: "=", Lt: "<", Lte: "<=", Gt: ">", Gte: ">="}


def _row(columns: Sequence[str]) -> sql.Composed:
    """The columns as one JSON object, made where the row is, so that an order holds."""
    return sql.SQL("(select row_to_json(c) from (select {}) c) as row").format(_names(columns, of="t"))


def _order(order: Sequence[Order]) -> sql.Composable:
    if not order:
        return sql.SQL("")
    by = [
        sql.SQL("{} {}").format(sql.Identifier("t", each.column), sql.SQL("desc" if each.descending else "asc"))
        for each in order
    ]
    return sql.SQL(" order by {}").format(sql.SQL(", ").join(by))


def _set(values: Mapping[str, JsonValue], source: LiteralString, *, verb: LiteralString = "update set") -> sql.Composed:
    pairs = [sql.SQL("{} = {}").format(sql.Identifier(column), sql.Identifier(source, column)) for column in values]
    return sql.SQL("{} {}").format(sql.SQL(verb), sql.SQL(", ").join(pairs))


def _names(columns: Sequence[str], *, of: str | None = None) -> sql.Composed:
    return sql.SQL(", ").join(
        [sql.Identifier(column) if of is None else sql.Identifier(of, column) for column in columns]
    )
