"""What is refused before a table is asked, and the one form in which values go there. Pure."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final
from urllib.parse import quote
from uuid import UUID

from agentic.contract.errors import ProgramFault
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import clean_text
from agentic.services.tools.scoped_queries import Contains, Filter, In, IsNull, NotNull, Order, Value

ORGANIZATION: Final = "organization_id"
MAX_CONDITION_BYTES: Final = 6000
"""Bytes of all values that one query compares with, as an address holds them: they travel in one, and gateways refuse long ones."""

_QUOTES: Final = 9
"""What a value of a list takes beside itself: two quotes and a comma."""


def checked_columns(table: str, known: frozenset[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, each once and at least one.

    Raises:
        ProgramFault: one is unknown or is the organization's, or there is none.
    """
    for column in columns:
        _check_column(table, known, column)
    if not columns or isinstance(columns, str) or len(set(columns)) != len(columns):
        raise _fault(table, "columns are named as a list, at least one and each once")
    return tuple(columns)


def checked_order(table: str, known: frozenset[str], order: Sequence[Order]) -> tuple[Order, ...]:
    """The order, over known columns.

    Raises:
        ProgramFault: a column is unknown or is the organization's.
    """
    for by in order:
        _check_column(table, known, by.column)
    return tuple(order)


def checked_filters(table: str, known: frozenset[str], where: Sequence[Filter]) -> tuple[Filter, ...]:
    """The conditions, with their values as the text of a literal.

    Raises:
        ProgramFault: a column is unknown or is the organization's, a value has no such form, or all are too long together.
    """
    checked = tuple(_checked_filter(table, known, condition) for condition in where)
    if sum(_weight(condition) for condition in checked) > MAX_CONDITION_BYTES:
        raise _fault(
            table,
            f"the conditions compare with more than {MAX_CONDITION_BYTES} bytes as an address holds them; ask in several queries",
        )
    return checked


def checked_rows(
    table: str, known: frozenset[str], rows: Sequence[Mapping[str, object]], *, at_most: int
) -> tuple[Mapping[str, JsonValue], ...]:
    """The rows in plain JSON.

    Raises:
        ProgramFault: there are none or too many, their columns differ, or one is refused by ``checked_values``.
    """
    if not 1 <= len(rows) <= at_most:
        raise _fault(table, f"a write has 1 to {at_most} rows")
    if any(row.keys() != rows[0].keys() for row in rows):
        raise _fault(
            table, "the rows of one write have the same columns; what is left out of one gets no default in another"
        )
    return tuple(checked_values(table, known, row) for row in rows)


def checked_values(table: str, known: frozenset[str], values: Mapping[str, object]) -> Mapping[str, JsonValue]:
    """The values of a row in plain JSON.

    Raises:
        ProgramFault: there are none, a column is unknown or is the organization's, or a value has no column form.
    """
    if not values:
        raise _fault(table, "a row has at least one column")
    for column in values:
        _check_column(table, known, column)
    return {column: _plain(table, column, value) for column, value in values.items()}


def _checked_filter(table: str, known: frozenset[str], condition: Filter) -> Filter:
    _check_column(table, known, condition.column)
    match condition:
        case IsNull() | NotNull():
            return condition
        case In():
            return In(condition.column, tuple(_literal(table, condition.column, value) for value in condition.values))
        case Contains():
            if not condition.text:
                raise _fault(table, f"a text to look for in {condition.column} has at least one character")
            return Contains(condition.column, clean_text(condition.text))
        case _:
            return dataclasses.replace(condition, value=_literal(table, condition.column, condition.value))


def _weight(condition: Filter) -> int:
    match condition:
        case IsNull() | NotNull():
            return 0
        case In():
            return sum(_escaped(value) + _QUOTES for value in condition.values)
        case Contains():
            return _escaped(condition.text)
        case _:
            return _escaped(condition.value)


def _escaped(value: Value) -> int:
    return len(quote(str(value), safe=""))


def _check_column(table: str, known: frozenset[str], column: str) -> None:
    if column == ORGANIZATION:
        raise _fault(
            table,
            "organization_id is neither read, set nor compared with; where rows have one, every query is within it",
        )
    if column not in known:
        raise _fault(table, f"there is no column {column!r}; there are {', '.join(sorted(known))}")


def _literal(table: str, column: str, value: Value) -> str:
    plain = _plain(table, column, value)
    match plain:
        case str():
            return plain
        case bool() | int() | float():
            return json.dumps(plain)
        case _:
            raise _fault(table, f"{column} is compared with one value; for the absence of one there is IsNull")


def _plain(table: str, column: str, value: object) -> JsonValue:
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean_text(value)
        case float() if math.isfinite(value):
            return value
        case Decimal() if value.is_finite():
            return str(value)
        case UUID():
            return str(value)
        case datetime() if value.tzinfo is not None:
            return value.isoformat()
        case list() | tuple() if all(isinstance(item, str) for item in value):
            return [clean_text(item) for item in value]
        case datetime():
            raise _fault(table, f"{column} is a moment without a time zone")
        case _:
            raise _fault(table, f"{column} cannot hold {type(value).__name__} of this kind")


def _fault(table: str, why: str) -> ProgramFault:
    return ProgramFault(f"{table}: {why}")
