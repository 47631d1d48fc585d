"""A company is one row, however and in whatever order it is mentioned."""

import asyncio
from itertools import permutations
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm import companies
from agentic.services.tools.handlers.crm.companies import (
    delete_company,
    get_company,
    search_companies,
    upsert_company,
)
from agentic.services.tools.handlers.crm.facts import CompanyFacts
from agentic.services.tools.handlers.crm.keyed import Saved
from agentic.services.tools.scoped_db import ScopedDb


async def saved(db: ScopedDb, name: str, domain: str | None = None, **facts: Any) -> Saved:
    return await upsert_company(db, CompanyFacts(name=name, domain=domain, **facts))


async def everything(db: ScopedDb) -> list[dict[str, Any]]:
    return await search_companies(db, "", limit=100)


async def test_a_company_is_made_once_and_found_by_its_domain_or_its_name(db: ScopedDb) -> None:
    first = await saved(db, "Polarlys Studio")
    named = await saved(db, " polarlys  STUDIO ", "https://www.Polarlys.example/en", city="Tromsø")
    by_domain = await saved(db, "Polarlys Studio AS", "polarlys.example")
    other = await saved(db, "Polarlys Studio", "polarlys.test")
    assert [each.created for each in (first, named, by_domain, other)] == [True, False, False, True]
    assert first.id == named.id == by_domain.id != other.id
    assert named.changed == ("city", "domain")
    found = await get_company(db, first.id)
    assert (found["name"], found["domain"], found["city"]) == ("Polarlys Studio", "polarlys.example", "Tromsø")


async def test_an_upsert_sets_what_is_said_and_keeps_the_rest_and_said_again_changes_nothing(db: ScopedDb) -> None:
    first = await saved(db, "Polarlys", "polarlys.example", industry="Design", city="Tromsø")
    assert first.changed == ("city", "domain", "industry", "name")
    second = await saved(db, "POLARLYS", "polarlys.example", city="Oslo", industry=" ")
    assert (second.created, second.changed) == (False, ("city",))
    before = await get_company(db, first.id)
    assert (before["name"], before["industry"], before["city"]) == ("Polarlys", "Design", "Oslo")
    third = await saved(db, "Polarlys", "polarlys.example", city="Oslo")
    assert (third.created, third.changed) == (False, ())
    assert await get_company(db, first.id) == before


MENTIONS: tuple[dict[str, Any], ...] = (
    {"name": "Fjord Analytics", "city": "Bergen"},
    {"name": "FJORD analytics", "domain": "fjord.example", "industry": "Data"},
    {"name": "Fjord Analytics", "domain": "www.fjord.example", "notes": "Met at the fair"},
)


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_mentions_of_one_company_make_the_same_row_in_any_order(db: ScopedDb, order: tuple[int, ...]) -> None:
    for number in order:
        await saved(db, **MENTIONS[number])
    (row,) = await everything(db)
    shown = {column: row[column] for column in ("domain", "city", "industry", "notes")}
    assert shown == {"domain": "fjord.example", "city": "Bergen", "industry": "Data", "notes": "Met at the fair"}
    assert [found["id"] for found in await search_companies(db, "bergen data fjord.example", limit=5)] == [row["id"]]


async def test_upserts_at_once_of_a_company_that_was_not_there_make_one(db: ScopedDb) -> None:
    for turn in range(5):
        answers = await asyncio.gather(
            *(
                saved(db, f"Nordlys {turn}", f"nordlys{turn}.example" if n % 2 else None, city=f"City {n}")
                for n in range(8)
            )
        )
        assert len({each.id for each in answers}) == 1
        assert [each.created for each in answers].count(True) == 1
    assert len(await everything(db)) == 5


async def test_companies_of_one_name_that_come_at_once_with_two_domains_are_two_and_mix_nothing(db: ScopedDb) -> None:
    cities = {"nordlys.example": "Oslo", "nordlys.test": "Bodø"}
    await asyncio.gather(
        *(saved(db, "Nordlys", domain, city=city) for domain, city in cities.items() for _ in range(4))
    )
    assert {row["domain"]: row["city"] for row in await everything(db)} == cities


async def test_a_row_that_a_dead_process_left_half_made_is_completed(db: ScopedDb) -> None:
    name = {"name": "Nordlys", "name_key": "nordlys", "search_text": "nordlys"}
    (half,) = await db.insert(companies.COMPANY.table, [name], returning=["id"])
    whole = await saved(db, "Nordlys", "nordlys.example", city="Oslo")
    assert whole.id == half["id"]
    assert len(await everything(db)) == 1


async def test_a_deleted_company_is_in_no_answer_and_its_name_and_domain_are_free(db: ScopedDb) -> None:
    old = await saved(db, "Nordlys", "nordlys.example", city="Oslo")
    assert await delete_company(db, UUID(old.id)) is True
    assert await delete_company(db, UUID(old.id)) is False
    assert await everything(db) == []
    with pytest.raises(NotFound, match="search for companies"):
        await get_company(db, old.id)
    new = await saved(db, "Nordlys", "nordlys.example")
    assert new.created
    assert new.id != old.id
    assert [row["id"] for row in await everything(db)] == [new.id]
    with pytest.raises(NotFound):
        await delete_company(db, uuid4())


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("blå", ["Blå Kyst", "Blåbær & Sønner"]),
        ("SØNNER blabaer", ["Blåbær & Sønner"]),
        ("kyst.example", ["Blå Kyst"]),
        ("%", ["100 % Havn"]),
        ("_", []),
        ("*", []),
        ("\\", []),
        ("havn oslo", []),
    ],
)
async def test_companies_are_found_by_every_word_without_case_and_accents(
    db: ScopedDb, query: str, names: list[str]
) -> None:
    await saved(db, "Blå Kyst", "kyst.example")
    await saved(db, "Blåbær & Sønner", city="Oslo")
    await saved(db, "100 % Havn")
    assert [found["name"] for found in await search_companies(db, query, limit=10)] == names


async def test_a_search_gives_no_more_than_it_was_asked_for_the_oldest_first(db: ScopedDb) -> None:
    for number in range(4):
        await saved(db, f"Company {number}")
    assert [found["name"] for found in await search_companies(db, "company", limit=2)] == ["Company 0", "Company 1"]
