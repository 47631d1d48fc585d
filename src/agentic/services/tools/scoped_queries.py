"""What may be asked of a table of organizations: conditions, order, and the five verbs, as values.

A closed set, so that an adapter translates every case and nothing is text that a caller put together. Values of a query are
already in the form both databases' interfaces take: text for conditions, plain JSON for rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias
from uuid import UUID

from agentic.contract.json_types import JsonValue

Value: TypeAlias = str | int | float | bool | UUID | datetime | Decimal
"""What a column is compared with."""

Row: TypeAlias = dict[str, JsonValue]
"""A row as plain JSON: ids and moments as text, moments in ISO 8601."""


@dataclass(frozen=True, slots=True)
class Eq:
    """The column is this value."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The column is one of these values; with none of them nothing is found."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value."""

    column: str


@dataclass(frozen=True, slots=True)
class NotNull:
    """The column has a value."""

    column: str


@dataclass(frozen=True, slots=True)
class Lt:
    """The column is less than this value."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class Lte:
    """The column is this value or less."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class Gt:
    """The column is greater than this value."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class Gte:
    """The column is this value or greater."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class Contains:
    """The text occurs in the column, whatever its case. Every character means itself: there are no wildcards."""

    column: str
    text: str


Filter: TypeAlias = Eq | In | IsNull | NotNull | Lt | Lte | Gt | Gte | Contains


@dataclass(frozen=True, slots=True)
class Order:
    """By which column rows come; those without a value last, or first when descending."""

    column: str
    descending: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Select:
    """Read rows."""

    table: str
    columns: tuple[str, ...]
    where: tuple[Filter, ...]
    order: tuple[Order, ...]
    limit: int
    offset: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Insert:
    """Write new rows, all with the same columns."""

    table: str
    rows: tuple[Mapping[str, JsonValue], ...]
    returning: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Upsert:
    """Write rows, and where one with the same values in ``on`` is there already, update it or keep it as it is."""

    table: str
    rows: tuple[Mapping[str, JsonValue], ...]
    on: tuple[str, ...]
    existing: Literal["update", "keep"]
    returning: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """Set columns of the rows that are meant."""

    table: str
    values: Mapping[str, JsonValue]
    where: tuple[Filter, ...]
    returning: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Delete:
    """Remove the rows that are meant."""

    table: str
    where: tuple[Filter, ...]
    returning: tuple[str, ...]


Query: TypeAlias = Select | Insert | Upsert | Update | Delete
