"""One statement for each query of tables. Pure.

Columns that the store holds fixed, such as the organization, are a condition of every statement and a value of every row it writes;
a query neither sets nor sees them. The table is always ``t``, and names come from a checked query. Rows go in and come out as JSON,
which the database itself fits to the columns.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString, assert_never

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
    Select,
    Update,
    Upsert,
)

LITERAL: Final = "***="
"""Makes the rest of a regular expression plain characters, which nothing in a pattern of ``like`` does for a ``*`` on both ways."""

_OPERATORS: Final[Mapping[type, LiteralString]] = {Eq: "=", Lt: "<", Lte: "<=", Gt: ">", Gte: ">="}


def statement_of(query: Query, fixed: Mapping[str, object]) -> tuple[sql.Composed, Mapping[str, Any]]:
    """The statement and its values. Each row of its answer is one column, ``row``, of JSON.

    Args:
        query: what is asked.
        fixed: columns to the values that all rows concerned have.
    """
    return _Statement(fixed).of(query)


class _Statement:
    def __init__(self, fixed: Mapping[str, object]) -> None:
        self._params: dict[str, Any] = {}
        self._fixed = {column: self._value(value) for column, value in fixed.items()}

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
                    _names([*self._fixed, *query.on]),
                    sql.SQL("nothing") if query.existing == "keep" else _set(query.rows[0], "excluded", "update set"),
                    _row(query.returning),
                )
            case Update():
                statement = sql.SQL(
                    "update {table} t {set} from json_populate_record(null::{table}, {given}::json) given where {where} returning {row}"
                ).format(
                    table=table,
                    set=_set(query.values, "given", "set"),
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
        values: list[sql.Composable] = [sql.Identifier("given", column) for column in columns]
        return sql.SQL(
            "insert into {table} as t ({columns}) select {values} from json_populate_recordset(null::{table}, {rows}::json) given"
        ).format(
            table=table,
            columns=_names([*self._fixed, *columns]),
            values=_listed([*self._fixed.values(), *values]),
            rows=self._value(json.dumps([dict(row) for row in rows])),
        )

    def _where(self, where: Sequence[Filter]) -> sql.Composable:
        conditions = [
            *(sql.SQL("{} = {}").format(sql.Identifier("t", column), value) for column, value in self._fixed.items()),
            *(self._condition(condition) for condition in where),
        ]
        return sql.SQL(" and ").join(conditions) if conditions else sql.SQL("true")

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
                return sql.SQL("{} in ({})").format(column, _listed(values))
            case Contains():
                return sql.SQL("{} ~* {}").format(column, self._value(LITERAL + condition.text))
            case Eq() | Lt() | Lte() | Gt() | Gte():
                operator = sql.SQL(_OPERATORS[type(condition)])
                return sql.SQL("{} {} {}").format(column, operator, self._value(condition.value))
            case _:
                assert_never(condition)

    def _value(self, value: object) -> sql.Placeholder:
        name = f"p{len(self._params)}"
        self._params[name] = value
        return sql.Placeholder(name)


def _row(columns: Sequence[str]) -> sql.Composed:
    """The columns as one JSON object, made where the row is, so that an order holds."""
    values: list[sql.Composable] = [sql.Identifier("t", column) for column in columns]
    return sql.SQL("(select row_to_json(c) from (select {}) c) as row").format(_listed(values))


def _order(order: Sequence[Order]) -> sql.Composable:
    if not order:
        return sql.SQL("")
    by: list[sql.Composable] = [
        sql.SQL("{} {}").format(sql.Identifier("t", each.column), sql.SQL("desc" if each.descending else "asc"))
        for each in order
    ]
    return sql.SQL(" order by {}").format(_listed(by))


def _set(values: Mapping[str, JsonValue], source: LiteralString, verb: LiteralString) -> sql.Composed:
    pairs: list[sql.Composable] = [
        sql.SQL("{} = {}").format(sql.Identifier(column), sql.Identifier(source, column)) for column in values
    ]
    return sql.SQL("{} {}").format(sql.SQL(verb), _listed(pairs))


def _names(columns: Sequence[str]) -> sql.Composed:
    return _listed([sql.Identifier(column) for column in columns])


def _listed(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
