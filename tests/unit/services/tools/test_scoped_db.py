"""What is asked of tables of organizations is checked before it is asked: names, values, the organization, and how much."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.errors import ProgramFault
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import clean_text
from agentic.services.tools.scoped_checks import MAX_CONDITION_BYTES
from agentic.services.tools.scoped_db import MAX_ROWS, ScopedDatabaseOver, ScopedDb
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

ORGANIZATION = UUID(int=7)


class Asked:
    """Rows that are nowhere; remembers what was asked."""

    def __init__(self) -> None:
        self.queries: list[tuple[UUID, Query]] = []

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        self.queries.append((organization_id, query))
        return []


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def db(asked: Asked) -> ScopedDb:
    tables = {"orders": frozenset({"id", "note", "pieces"}), "lists": frozenset({"id"})}
    return ScopedDatabaseOver(asked, tables=tables).of(ORGANIZATION)


Ask = Callable[[ScopedDb, str], Awaitable[object]]
CONDITIONS: list[Callable[[str], Filter]] = [
    lambda column: Eq(column, 1),
    lambda column: In(column, (1,)),
    IsNull,
    NotNull,
    lambda column: Lt(column, 1),
    lambda column: Lte(column, 1),
    lambda column: Gt(column, 1),
    lambda column: Gte(column, 1),
    lambda column: Contains(column, "x"),
]
WHERE = [Eq("id", 1)]
PLACES: dict[str, Ask] = {
    "read": lambda db, name: db.select("orders", [name], limit=1),
    "ordered by": lambda db, name: db.select("orders", ["id"], order=[Order(name)], limit=1),
    "inserted": lambda db, name: db.insert("orders", [{name: 1}], returning=["id"]),
    "given back by an insert": lambda db, name: db.insert("orders", [{"id": 1}], returning=[name]),
    "upserted": lambda db, name: db.upsert("orders", [{name: 1}], on=["note"], returning=["id"]),
    "the key of an upsert": lambda db, name: db.upsert("orders", [{"note": "n"}], on=[name], returning=["id"]),
    "given back by an upsert": lambda db, name: db.upsert("orders", [{"note": 1}], on=["note"], returning=[name]),
    "set": lambda db, name: db.update("orders", {name: 1}, where=WHERE, returning=["id"]),
    "given back by an update": lambda db, name: db.update("orders", {"note": 1}, where=WHERE, returning=[name]),
    "given back by a delete": lambda db, name: db.delete("orders", where=WHERE, returning=[name]),
    **{
        f"a condition {number}": lambda db, name, made=made: db.select("orders", ["id"], where=[made(name)], limit=1)  # type: ignore[misc]
        for number, made in enumerate(CONDITIONS)
    },
    "a condition of an update": lambda db, name: db.update(
        "orders", {"note": 1}, where=[IsNull(name)], returning=["id"]
    ),
    "a condition of a delete": lambda db, name: db.delete("orders", where=[IsNull(name)], returning=["id"]),
}


@pytest.mark.guarantee("T1")
@pytest.mark.parametrize("place", PLACES)
async def test_the_organization_is_nobodys_to_name(db: ScopedDb, asked: Asked, place: str) -> None:
    with pytest.raises(ProgramFault, match=r"orders: organization_id is neither read, set nor compared with"):
        await PLACES[place](db, "organization_id")
    assert asked.queries == []


@pytest.mark.parametrize("name", ["x", "id,organization_id", "lists(*)", "id::text", "Id", "", "*", 'id"'])
@pytest.mark.parametrize("place", PLACES)
async def test_a_name_that_is_no_column_is_refused(db: ScopedDb, asked: Asked, place: str, name: str) -> None:
    with pytest.raises(ProgramFault, match=r"orders: there is no column '.*'; there are id, note, pieces"):
        await PLACES[place](db, name)
    assert asked.queries == []


@pytest.mark.guarantee("T1")
@pytest.mark.parametrize("table", ["customers", "orders; drop", "public.orders", "agent.runs", "rpc/do", ""])
async def test_a_table_that_is_not_on_the_list_is_refused(db: ScopedDb, asked: Asked, table: str) -> None:
    asks: list[Awaitable[object]] = [
        db.select(table, ["id"], limit=1),
        db.insert(table, [{"id": 1}], returning=["id"]),
        db.upsert(table, [{"id": 1}], on=["id"], returning=["id"]),
        db.update(table, {"id": 1}, where=WHERE, returning=["id"]),
        db.delete(table, where=WHERE, returning=["id"]),
    ]
    for ask in asks:
        with pytest.raises(
            ProgramFault, match=r"is no table of organizations that tools may reach; there are lists, orders"
        ):
            await ask
    assert asked.queries == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.select("orders", [], limit=1),
        lambda db: db.select("orders", ["id", "id"], limit=1),
        lambda db: db.select("orders", ["id"], limit=0),
        lambda db: db.select("orders", ["id"], limit=MAX_ROWS + 1),
        lambda db: db.select("orders", ["id"], limit=1, offset=-1),
        lambda db: db.insert("orders", [], returning=["id"]),
        lambda db: db.insert("orders", [{}], returning=["id"]),
        lambda db: db.insert("orders", [{"note": "x"}] * (MAX_ROWS + 1), returning=["id"]),
        lambda db: db.insert("orders", [{"note": "x"}, {"pieces": 1}], returning=["id"]),
        lambda db: db.insert("orders", [{"note": "x"}], returning=[]),
        lambda db: db.upsert("orders", [{"id": 1, "note": "x"}], on=["note"], returning=["id"]),
        lambda db: db.upsert("orders", [{"note": "x"}], on=[], returning=["id"]),
        lambda db: db.update("orders", {}, where=WHERE, returning=["id"]),
        lambda db: db.update("orders", {"note": "x"}, where=[], returning=["id"]),
        lambda db: db.delete("orders", where=[], returning=["id"]),
        lambda db: db.select("orders", ["id"], where=[Contains("note", "")], limit=1),
        lambda db: db.select("orders", ["id"], where=[Eq("note", "x" * (MAX_CONDITION_BYTES + 1))], limit=1),
        lambda db: db.select("orders", ["id"], where=[Contains("note", "é" * MAX_CONDITION_BYTES)], limit=1),
        lambda db: db.select("orders", ["id"], where=[In("note", tuple("x" * 60 for _ in range(100)))], limit=1),
    ],
)
async def test_too_little_or_too_much_is_refused(
    db: ScopedDb, asked: Asked, ask: Callable[[ScopedDb], Awaitable[object]]
) -> None:
    with pytest.raises(ProgramFault, match=r"^orders: "):
        await ask(db)
    assert asked.queries == []


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        datetime(2026, 1, 1),  # noqa: DTZ001 - the case
        b"bytes",
        {"a": 1},
        [1],
        [["a"]],
        {"a"},
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_value_that_no_column_holds_alike_is_refused(db: ScopedDb, asked: Asked, value: object) -> None:
    asks: list[Awaitable[object]] = [
        db.insert("orders", [{"note": value}], returning=["id"]),
        db.update("orders", {"note": value}, where=WHERE, returning=["id"]),
        db.select("orders", ["id"], where=[Eq("note", value)], limit=1),  # type: ignore[arg-type]
    ]
    for ask in asks:
        with pytest.raises(ProgramFault, match=r"^orders: note "):
            await ask
    assert asked.queries == []


@pytest.mark.parametrize("value", [None, ["a"]])
async def test_a_column_is_compared_with_one_value(db: ScopedDb, value: object) -> None:
    with pytest.raises(ProgramFault, match="compared with one value"):
        await db.select("orders", ["id"], where=[Eq("note", value)], limit=1)  # type: ignore[arg-type]


class Kind(StrEnum):
    NEW = "new"


@pytest.mark.parametrize(
    ("value", "written", "compared"),
    [
        ("x", "x", "x"),
        (Kind.NEW, "new", "new"),
        (True, True, "true"),
        (7, 7, "7"),
        (0.5, 0.5, "0.5"),
        (Decimal("1.50"), "1.50", "1.50"),
        (UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"),
        ("a\0\ud800", "a␀\ufffd", "a␀\ufffd"),
    ],
)
async def test_values_go_in_one_form(db: ScopedDb, asked: Asked, value: str, written: JsonValue, compared: str) -> None:
    await db.insert("orders", [{"note": value}], returning=["id"])
    await db.select("orders", ["id"], where=[Eq("note", value), In("note", (value,)), Lt("note", value)], limit=1)
    insert, select = (query for _, query in asked.queries)
    assert insert == Insert(table="orders", rows=({"note": written},), returning=("id",))
    assert isinstance(select, Select)
    assert select.where == (Eq("note", compared), In("note", (compared,)), Lt("note", compared))


async def test_every_verb_asks_within_the_organization(db: ScopedDb, asked: Asked) -> None:
    await db.select("orders", ["id", "note"], where=WHERE, order=[Order("note", descending=True)], limit=3, offset=2)
    await db.insert("orders", [{"note": "x"}], returning=["id"])
    await db.upsert("orders", [{"note": "x"}], on=["note"], returning=["id"], existing="keep")
    await db.upsert("orders", [{"id": "1", "note": "x"}], on=["id"], returning=["id"])
    await db.update("orders", {"note": None}, where=WHERE, returning=["id"])
    await db.delete("orders", where=WHERE, returning=["id"])
    where = (Eq("id", "1"),)
    row: Mapping[str, str] = {"note": "x"}
    assert asked.queries == [
        (ORGANIZATION, query)
        for query in [
            Select(
                table="orders",
                columns=("id", "note"),
                where=where,
                order=(Order("note", descending=True),),
                limit=3,
                offset=2,
            ),
            Insert(table="orders", rows=(row,), returning=("id",)),
            Upsert(table="orders", rows=(row,), on=("note",), existing="keep", returning=("id",)),
            Upsert(table="orders", rows=({"id": "1", **row},), on=("id",), existing="update", returning=("id",)),
            Update(table="orders", values={"note": None}, where=where, returning=("id",)),
            Delete(table="orders", where=where, returning=("id",)),
        ]
    ]


@given(st.lists(st.text(max_size=60), max_size=30))
async def test_what_is_asked_is_never_longer_than_an_address_may_be(values: Sequence[str]) -> None:
    asked = Asked()
    db = ScopedDatabaseOver(asked, tables={"orders": frozenset({"id"})}).of(ORGANIZATION)
    try:
        await db.select("orders", ["id"], where=[In("id", tuple(values))], limit=1)
    except ProgramFault:
        sent = ",".join(f'"{clean_text(value)}"' for value in values)
        assert len(quote(sent, safe="")) > MAX_CONDITION_BYTES - 9
        return
    ((_, query),) = asked.queries
    assert isinstance(query, Select) and isinstance(query.where[0], In)
    sent = ",".join(f'"{value}"' for value in query.where[0].values)
    assert len(quote(sent, safe="")) <= MAX_CONDITION_BYTES


async def test_a_hundred_ids_fit_one_query(db: ScopedDb, asked: Asked) -> None:
    await db.select("orders", ["note"], where=[In("id", tuple(UUID(int=n) for n in range(100)))], limit=100)
    assert len(asked.queries) == 1
