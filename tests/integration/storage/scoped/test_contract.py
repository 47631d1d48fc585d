"""What the port promises, kept by each adapter: over Postgres, and over the interface of Supabase."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import AgenticError, ProgramFault, StorageUnavailable
from agentic.services.tools.scoped_db import (
    MAX_ROWS,
    KeyTaken,
    ReferenceMissing,
    ScopedDatabase,
    ScopedDatabaseOver,
    ScopedDb,
)
from agentic.services.tools.scoped_queries import (
    Contains,
    Eq,
    Filter,
    Gt,
    Gte,
    In,
    IsNull,
    Lt,
    Lte,
    NotNull,
    Order,
)
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from agentic.storage.database import Database
from agentic.storage.pool import Pool, open_pool
from agentic.storage.scoped_psycopg import PostgresRows
from scoped_stage import NEEDS_INTERFACE, PRODUCT_TABLES, Stage, planted

HOSTILE = [
    *"%_*\\'\"(),.:;&=?#+{}[]|^$!~/ <>@",
    "100%", "a_b", "a*b", "a\\b", "***=x", "(?i)x", "x.*", "null", "NULL", "true", "{a,b}", "in.(1)", "eq.x", "a,b", 'd"e', "d\\\"e",
    "%27 or 1=1", "'; drop table shop_orders; --", "or=(id.gt.0)", "Ünïcödé", "日本", "e\u0301", "🦊", "tab\there", "two\nlines", "  blanks  ",
]  # fmt: skip


async def notes(db: ScopedDb, *where: Filter) -> list[object]:
    rows = await db.select("shop_orders", ["note"], where=where, order=[Order("note")], limit=MAX_ROWS)
    return [row["note"] for row in rows]


async def test_rows_come_back_in_their_order_as_plain_json(db: ScopedDatabase) -> None:
    customer = uuid4()
    rows = await db.of(uuid4()).insert(
        "shop_orders",
        [
            {
                "note": "first",
                "tags": ["a,b", 'd"e', "", "null"],
                "amount": Decimal("1234.50"),
                "pieces": 3,
                "weight": 0.25,
                "paid": True,
                "placed_at": datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=2))),
                "customer": customer,
            },
            {
                "note": None,
                "tags": None,
                "amount": None,
                "pieces": None,
                "weight": None,
                "paid": None,
                "placed_at": None,
                "customer": None,
            },
        ],
        returning=["note", "tags", "amount", "pieces", "weight", "paid", "placed_at", "customer"],
    )
    assert rows == [
        {
            "note": "first",
            "tags": ["a,b", 'd"e', "", "null"],
            "amount": 1234.5,
            "pieces": 3,
            "weight": 0.25,
            "paid": True,
            "placed_at": "2026-03-01T10:30:00+00:00",
            "customer": str(customer),
        },
        dict.fromkeys(rows[0]),
    ]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Eq("pieces", 2), ["b"]),
        (Eq("amount", Decimal("2.50")), ["b"]),
        (Eq("paid", True), ["a", "c"]),
        (Eq("weight", 0.5), ["b"]),
        (Eq("customer", UUID(int=2)), ["b"]),
        (Eq("placed_at", datetime(2026, 1, 2, tzinfo=UTC)), ["b"]),
        (In("pieces", (1, 3, 9)), ["a", "c"]),
        (In("note", ("a", "b,c", 'd"')), ["a"]),
        (In("note", ()), []),
        (IsNull("tags"), ["b", "c"]),
        (NotNull("tags"), ["a"]),
        (Lt("pieces", 2), ["a"]),
        (Lte("pieces", 2), ["a", "b"]),
        (Gt("placed_at", datetime(2026, 1, 2, tzinfo=UTC)), ["c"]),
        (Gte("placed_at", datetime(2026, 1, 2, tzinfo=UTC)), ["b", "c"]),
        (Contains("note", "B"), ["b"]),
    ],
    ids=lambda value: str(value) if isinstance(value, Filter) else "",
)
async def test_a_condition_finds_what_meets_it_and_nothing_else(
    db: ScopedDatabase, where: Filter, found: list[str]
) -> None:
    own = db.of(uuid4())
    await own.insert(
        "shop_orders",
        [
            {
                "note": note,
                "tags": ["x"] if number == 1 else None,
                "pieces": number,
                "amount": Decimal(number) + Decimal("0.5"),
                "weight": number / 4,
                "paid": number != 2,
                "customer": UUID(int=number),
                "placed_at": datetime(2026, 1, number, tzinfo=UTC),
            }
            for number, note in enumerate("abc", 1)
        ],
        returning=["id"],
    )
    assert await notes(own, where) == found
    assert await notes(own, where, IsNull("note")) == [], "conditions hold together"


async def test_every_character_of_a_value_means_itself(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    await own.insert("shop_orders", [{"note": text} for text in HOSTILE], returning=["id"])
    for text in HOSTILE:
        assert await notes(own, Eq("note", text)) == [text]
        assert await notes(own, In("note", (text, "absent"))) == [text]
        found = {str(note) for note in await notes(own, Contains("note", text))}
        assert found == {other for other in HOSTILE if text.lower() in other.lower()}, text


async def test_a_part_of_a_text_is_found_whatever_its_case_and_characters(db: ScopedDatabase) -> None:
    chance = random.Random(11)
    letters = "aB%_*\\.^$(["
    texts = sorted({"".join(chance.choices(letters, k=6)) for _ in range(60)})
    own = db.of(uuid4())
    await own.insert("shop_orders", [{"note": text} for text in texts], returning=["id"])
    for _ in range(40):
        part = "".join(chance.choices(letters, k=chance.randint(1, 3)))
        found = {str(note) for note in await notes(own, Contains("note", part.swapcase()))}
        assert found == {text for text in texts if part.lower() in text.lower()}, part


async def test_rows_come_in_the_order_asked_for_and_no_more_of_them(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    rows = [{"note": note, "pieces": pieces} for note, pieces in [("b", 1), ("a", 2), ("c", 1), ("d", None)]]
    await own.insert("shop_orders", rows, returning=["id"])

    async def asked(*order: Order, limit: int = 10, offset: int = 0) -> list[object]:
        found = await own.select("shop_orders", ["note"], order=order, limit=limit, offset=offset)
        return [row["note"] for row in found]

    assert await asked(Order("note")) == ["a", "b", "c", "d"]
    assert await asked(Order("pieces"), Order("note", descending=True)) == ["c", "b", "a", "d"]
    assert await asked(Order("pieces", descending=True), Order("note")) == ["d", "a", "b", "c"]
    assert await asked(Order("note"), limit=2, offset=1) == ["b", "c"]
    assert await asked(Order("note"), offset=9) == []


async def test_an_upsert_updates_what_is_there_and_makes_what_is_not(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    (old,) = await own.insert(
        "crm_lists", [{"name": "friends", "name_key": "friends"}], returning=["id", "created_at", "updated_at"]
    )
    wanted = [{"name": "Friends", "name_key": "friends"}, {"name": "Foes", "name_key": "foes"}]
    saved = await own.upsert("crm_lists", wanted, on=["live_name_key"], returning=["id", "name", "created_at"])
    assert [row["name"] for row in saved] == ["Friends", "Foes"]
    assert (saved[0]["id"], saved[0]["created_at"]) == (old["id"], old["created_at"])
    (now,) = await own.select("crm_lists", ["updated_at"], where=[Eq("id", str(old["id"]))], limit=1)
    assert str(now["updated_at"]) > str(old["updated_at"]), "the database keeps the time of the change"


async def test_an_upsert_that_keeps_gives_back_only_what_it_made(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    await own.insert("crm_lists", [{"name": "friends", "name_key": "friends"}], returning=["id"])
    wanted = [{"name": "Friends", "name_key": "friends"}, {"name": "Foes", "name_key": "foes"}]
    saved = await own.upsert("crm_lists", wanted, on=["live_name_key"], returning=["name"], existing="keep")
    assert saved == [{"name": "Foes"}]
    rows = await own.select("crm_lists", ["name"], order=[Order("name_key")], limit=10)
    assert rows == [{"name": "Foes"}, {"name": "friends"}]


async def test_upserts_of_one_key_at_the_same_time_leave_one_row(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    saved = await asyncio.wait_for(
        asyncio.gather(
            *(
                own.upsert(
                    "crm_lists", [{"name": f"friends {n}", "name_key": "friends"}], on=["live_name_key"], returning=["id"]
                )
                for n in range(12)
            )
        ),
        timeout=30,
    )  # fmt: skip
    assert len({str(rows[0]["id"]) for rows in saved}) == 1
    assert len(await own.select("crm_lists", ["id"], limit=10)) == 1


async def test_a_deleted_row_leaves_its_key_to_another(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    for _ in range(2):
        (row,) = await own.insert(
            "crm_people",
            [{"name": "Ada", "name_key": "ada", "email": "ada@a.test", "email_key": "ada@a.test"}],
            returning=["id"],
        )
        gone = await own.update(
            "crm_people",
            {"deleted_at": datetime.now(UTC)},
            where=[Eq("live_email_key", "ada@a.test")],
            returning=["id", "live_email_key"],
        )
        assert gone == [{"id": row["id"], "live_email_key": None}]


async def test_update_and_delete_say_what_they_touched(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    await own.insert("shop_orders", [{"note": n, "pieces": 1} for n in ("a", "b", "c")], returning=["id"])
    changed = await own.update(
        "shop_orders", {"pieces": 5, "tags": ["new"]}, where=[In("note", ("a", "b"))], returning=["note", "tags"]
    )
    assert sorted(str(row["note"]) for row in changed) == ["a", "b"] and changed[0]["tags"] == ["new"]
    assert await own.update("shop_orders", {"pieces": 5}, where=[Eq("note", "z")], returning=["id"]) == []
    assert await own.delete("shop_orders", where=[Eq("pieces", 5), Eq("note", "a")], returning=["note"]) == [
        {"note": "a"}
    ]
    assert await notes(own) == ["b", "c"]


async def test_a_write_of_many_rows_is_whole_and_says_all_of_them(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    many = [{"note": f"{number:04}"} for number in range(MAX_ROWS)]
    assert await own.insert("shop_orders", many, returning=["note"]) == many
    await own.insert("shop_orders", many[:1], returning=["id"])
    assert (
        len(await own.update("shop_orders", {"pieces": 1}, where=[NotNull("note")], returning=["id"])) == MAX_ROWS + 1
    )
    assert len(await own.select("shop_orders", ["id"], limit=MAX_ROWS)) == MAX_ROWS


async def test_a_write_with_one_bad_row_writes_none(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    rows = [{"name": "a", "name_key": "a"}, {"name": "", "name_key": "b"}]
    with pytest.raises(ProgramFault):
        await own.insert("crm_lists", rows, returning=["id"])
    assert await own.select("crm_lists", ["id"], limit=10) == []


Refused = Callable[[ScopedDb], Awaitable[object]]
ADA = {"name": "Ada", "name_key": "ada"}
REFUSALS: list[tuple[Refused, type[AgenticError], str]] = [
    (
        lambda own: own.insert("crm_lists", [ADA, ADA], returning=["id"]),
        KeyTaken,
        "crm_lists has a row with this key already (crm_lists_one_per_name); read it, or write with upsert in place of insert",
    ),
    (
        lambda own: own.insert("crm_people", [{**ADA, "company_id": uuid4()}], returning=["id"]),
        ReferenceMissing,
        "crm_people: a row refers to one that does not exist in this organization, or is still referred to (crm_people_company)",
    ),
    (
        lambda own: own.insert("crm_lists", [{"name": "", "name_key": "x"}], returning=["id"]),
        ProgramFault,
        "crm_lists: the database refuses the values by the rule crm_lists_named (23514)",
    ),
    (
        lambda own: own.insert("crm_lists", [{"name": None, "name_key": "x"}], returning=["id"]),
        ProgramFault,
        "crm_lists: the database refuses the values for their form (23502)",
    ),
    (
        lambda own: own.insert("crm_lists", [{**ADA, "live_name_key": "x"}], returning=["id"]),
        ProgramFault,
        'crm_lists: the database refuses the query: cannot insert a non-DEFAULT value into column "live_name_key" (428C9)',
    ),
    (
        lambda own: own.insert("shop_orders", [{"pieces": "many"}], returning=["id"]),
        ProgramFault,
        "shop_orders: the database refuses the values for their form (22P02)",
    ),
    (
        lambda own: own.select("shop_orders", ["id"], where=[Eq("id", "s3cret")], limit=1),
        ProgramFault,
        "shop_orders: the database refuses the values for their form (22P02)",
    ),
    (
        lambda own: own.select("shop_orders", ["id"], where=[Contains("pieces", "1")], limit=1),
        ProgramFault,
        "shop_orders: the database refuses the query: operator does not exist: integer ~* unknown (42883)",
    ),
    (
        lambda own: own.upsert("crm_lists", [ADA], on=["name"], returning=["id"]),
        ProgramFault,
        (
            "crm_lists: the database refuses the query: there is no unique or exclusion constraint matching the "
            "ON CONFLICT specification (42P10)"
        ),
    ),
    (
        lambda own: own.upsert("crm_lists", [ADA, ADA], on=["live_name_key"], returning=["id"]),
        ProgramFault,
        "crm_lists: the database refuses the values for their form (21000)",
    ),
]


NAMES = ["key", "reference", "check", "null", "generated", "number", "id", "contains", "no key", "twice"]


@pytest.mark.parametrize(("ask", "kind", "says"), REFUSALS, ids=NAMES)
async def test_a_refusal_is_the_same_error_in_the_same_words(
    db: ScopedDatabase, ask: Refused, kind: type[AgenticError], says: str
) -> None:
    with pytest.raises(kind) as refused:
        await ask(db.of(uuid4()))
    assert type(refused.value) is kind and str(refused.value) == says


async def test_a_row_that_others_refer_to_stays(db: ScopedDatabase) -> None:
    own = db.of(uuid4())
    await planted(own, "crm_people")
    with pytest.raises(ReferenceMissing, match="crm_people_company"):
        await own.delete("crm_companies", where=[NotNull("id")], returning=["id"])


@NEEDS_INTERFACE
async def test_what_one_adapter_writes_the_other_reads_to_the_letter(stage: Stage) -> None:
    organization = uuid4()
    columns = ["id", "note", "tags", "amount", "pieces", "weight", "paid", "placed_at", "customer"]
    async with stage.both() as both:
        for number, writer in enumerate(both):
            written = await writer.of(organization).insert(
                "shop_orders",
                [
                    {
                        "note": text,
                        "tags": [text, ""],
                        "amount": Decimal("0.10"),
                        "pieces": -number,
                        "weight": 1e-7,
                        "paid": False,
                        "placed_at": datetime(1999, 12, 31, 23, 59, 59, 123456, tzinfo=UTC),
                        "customer": uuid4(),
                    }
                    for text in ["a\0b", "\ud800", *HOSTILE]
                ],
                returning=columns,
            )
            read = [
                await reader.of(organization).select(
                    "shop_orders", columns, where=[Eq("pieces", -number)], order=[Order("id")], limit=MAX_ROWS
                )
                for reader in both
            ]
            assert read[0] == read[1] == sorted(written, key=lambda row: str(row["id"]))
            assert {"a␀b", "\ufffd"} <= {row["note"] for row in written}, "what no column holds is made visible"


async def test_a_database_that_is_away_may_be_asked_again(stage: Stage) -> None:
    async with open_pool(stage.database, max_size=1) as pool:
        db = ScopedDatabaseOver(PostgresRows(Database(pool)), tables=PRODUCT_TABLES)
    with pytest.raises(StorageUnavailable, match="gave no connection in time"):
        await db.of(uuid4()).select("shop_orders", ["id"], limit=1)


async def test_the_role_and_the_claims_end_with_each_query(direct_database: str) -> None:
    async with open_pool(direct_database, max_size=1) as pool:
        db = ScopedDatabaseOver(PostgresRows(Database(pool)), tables=ORG_SCOPED_TABLES)
        before = await _who(pool)
        await planted(db.of(uuid4()), "crm_list_members")
        with pytest.raises(ProgramFault):
            await db.of(uuid4()).insert("crm_lists", [{"name": "", "name_key": ""}], returning=["id"])
        assert await _who(pool) == before


async def _who(pool: Pool) -> object:
    async with pool.connection() as connection:
        asked = (
            "select current_user, current_setting('timezone'), nullif(current_setting('request.jwt.claims', true), '')"
        )
        return await (await connection.execute(asked)).fetchall()
