"""Each request to Supabase's interface names the organization, and what comes back in its place is no answer."""

import json
from collections.abc import Awaitable, Callable
from urllib.parse import unquote
from uuid import UUID

import httpx
import pytest

from agentic.contract.errors import AgenticError, ProgramFault, StorageUnavailable
from agentic.services.tools.scoped_db import KeyTaken, ScopedDatabaseOver, ScopedDb
from agentic.services.tools.scoped_queries import Contains, Eq, Gt, In, IsNull, NotNull, Order
from agentic.storage.scoped_supabase import TIMEOUT_S, SupabaseRows

ORGANIZATION = UUID("00000000-0000-0000-0000-0000000000aa")
OWN = f"organization_id=eq.{ORGANIZATION}"
TABLES = {"orders": frozenset({"id", "note", "pieces"})}
Answer = Callable[[httpx.Request], httpx.Response]


def nothing(request: httpx.Request) -> httpx.Response:
    del request
    return httpx.Response(200, json=[])


def asked_by(answer: Answer) -> tuple[ScopedDb, list[httpx.Request]]:
    sent: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return answer(request)

    rows = SupabaseRows(url="https://abc.supabase.example/", key="k3y", transport=httpx.MockTransport(handler))
    return ScopedDatabaseOver(rows, tables=TABLES).of(ORGANIZATION), sent


WHERE = [Eq("id", 1)]


def parts(query: str) -> list[tuple[str, list[str]]]:
    """Names and their comma-separated values in one order; the client names written columns in that of a set."""
    pairs = (part.partition("=") for part in query.split("&"))
    return sorted((name, sorted(value.split(",")) if name == "columns" else [value]) for name, _, value in pairs)


@pytest.mark.guarantee("T1")
@pytest.mark.parametrize(
    ("ask", "method", "query", "rows"),
    [
        (
            lambda db: db.select(
                "orders",
                ["id", "note"],
                where=[In("note", ("a", 'd"e\\')), Gt("id", 1), Contains("note", "*%"), IsNull("note"), NotNull("id")],
                order=[Order("note", descending=True), Order("id")],
                limit=2,
                offset=4,
            ),
            "GET",
            (
                f'select=id,note&limit=2&offset=4&order=note.desc,id.asc&{OWN}&note=in.("a","d\\"e\\\\")&id=gt.1'
                "&note=imatch.***=*%&note=is.null&id=not.is.null"
            ),
            None,
        ),
        (
            lambda db: db.insert("orders", [{"note": "x"}], returning=["id"]),
            "POST",
            'columns="note","organization_id"&select=id',
            [{"note": "x", "organization_id": str(ORGANIZATION)}],
        ),
        (
            lambda db: db.upsert("orders", [{"note": "x"}], on=["note"], returning=["id"]),
            "POST",
            'on_conflict=organization_id,note&columns="note","organization_id"&select=id',
            [{"note": "x", "organization_id": str(ORGANIZATION)}],
        ),
        (
            lambda db: db.update("orders", {"note": None}, where=WHERE, returning=["id"]),
            "PATCH",
            f"{OWN}&id=eq.1&select=id",
            {"note": None},
        ),
        (
            lambda db: db.delete("orders", where=WHERE, returning=["id"]),
            "DELETE",
            f"{OWN}&id=eq.1&select=id",
            {},
        ),
    ],
    ids=["select", "insert", "upsert", "update", "delete"],
)
async def test_every_verb_names_the_organization_on_the_wire(
    ask: Callable[[ScopedDb], Awaitable[object]], method: str, query: str, rows: object
) -> None:
    db, sent = asked_by(nothing)
    await ask(db)
    (request,) = sent
    assert (request.method, request.url.path) == (method, "/rest/v1/orders")
    said = unquote(request.url.query.decode().replace("+", " "))
    assert parts(said) == parts(query)
    assert (json.loads(request.content) if request.content else None) == rows
    assert (request.headers["apikey"], request.headers["authorization"]) == ("k3y", "Bearer k3y")
    assert request.extensions["timeout"]["read"] == TIMEOUT_S


async def test_each_upsert_says_what_becomes_of_what_is_there() -> None:
    db, sent = asked_by(nothing)
    await db.upsert("orders", [{"note": "x"}], on=["note"], returning=["id"])
    await db.upsert("orders", [{"note": "x"}], on=["note"], returning=["id"], existing="keep")
    assert ["resolution=merge-duplicates" in request.headers["prefer"] for request in sent] == [True, False]
    assert ["resolution=ignore-duplicates" in request.headers["prefer"] for request in sent] == [False, True]


def answered(status: int, **given: object) -> Answer:
    return lambda request: httpx.Response(status, **given)  # type: ignore[arg-type]


def raising(error: type[httpx.TransportError]) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("Bearer k3y", request=request)

    return answer


def refused(code: str, message: str, status: int = 400) -> Answer:
    return answered(status, json={"code": code, "message": message, "details": "Key (note)=(s3cret)", "hint": None})


DUPLICATE = 'duplicate key value violates unique constraint "orders_one_per_note"'


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (raising(httpx.ConnectError), StorageUnavailable, r"no answer \(ConnectError\)"),
        (raising(httpx.ReadTimeout), StorageUnavailable, r"no answer \(ReadTimeout\)"),
        (answered(502, text="<html>bad gateway"), StorageUnavailable, "status 502"),
        (answered(503, json={"message": "no healthy upstream"}), StorageUnavailable, "status 503"),
        (answered(500, json=["?"]), StorageUnavailable, "status 500"),
        (answered(429, json={"message": "slow down"}), StorageUnavailable, "status 429"),
        (answered(200, text="<html>welcome"), StorageUnavailable, "does not speak its language"),
        (answered(200, json={"id": 1}), StorageUnavailable, "does not speak its language"),
        (refused("PGRST002", "no schema cache", 503), StorageUnavailable, "PGRST002"),
        (refused("PGRST003", "timed out", 504), StorageUnavailable, "PGRST003"),
        (refused("40001", "could not serialize", 500), StorageUnavailable, "40001"),
        (refused("57014", "canceling statement due to statement timeout", 500), StorageUnavailable, "57014"),
        (refused("53300", "too many connections", 503), StorageUnavailable, "53300"),
        (refused("PGRST301", "JWT expired", 401), ProgramFault, "SUPABASE_SERVICE_ROLE_KEY"),
        (refused("PGRST303", "JWT issued at future", 401), ProgramFault, "SUPABASE_SERVICE_ROLE_KEY"),
        (answered(401, json={"message": "Invalid API key"}), ProgramFault, "Invalid API key"),
        (refused("PGRST205", "Could not find the table", 404), ProgramFault, "Could not find the table"),
        (refused("42P01", 'relation "orders" does not exist', 404), ProgramFault, "does not exist"),
        (refused("23505", DUPLICATE, 409), KeyTaken, "orders_one_per_note"),
    ],
)
async def test_a_refusal_or_no_answer_has_its_own_kind_and_keeps_secrets(
    answer: Answer, kind: type[AgenticError], says: str
) -> None:
    db, sent = asked_by(answer)
    with pytest.raises(kind, match=says) as error:
        await db.select("orders", ["id"], limit=1)
    assert type(error.value) is kind
    assert "k3y" not in str(error.value) and "s3cret" not in str(error.value)
    assert len(sent) == 1, "sending it again is for whoever knows the call"


@pytest.mark.parametrize(
    "url", ["http://abc.supabase.example", "ftp://127.0.0.1", "abc.supabase.example", "", "http://"]
)
def test_the_key_is_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(ProgramFault, match="https"):
        SupabaseRows(url=url, key="k3y")
