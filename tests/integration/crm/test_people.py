"""A person is one row: by address, else by name within a company."""

import asyncio
from itertools import permutations
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm.companies import delete_company, upsert_company
from agentic.services.tools.handlers.crm.facts import CompanyFacts, PersonFacts
from agentic.services.tools.handlers.crm.keyed import Saved
from agentic.services.tools.handlers.crm.people import delete_person, get_person, search_people, upsert_person
from agentic.services.tools.scoped_db import ScopedDb


async def saved(db: ScopedDb, name: str, email: str | None = None, **facts: Any) -> Saved:
    return await upsert_person(db, PersonFacts(name=name, email=email, **facts))


async def company(db: ScopedDb, name: str = "Fjord AS", domain: str | None = None) -> UUID:
    return UUID((await upsert_company(db, CompanyFacts(name=name, domain=domain))).id)


async def everybody(db: ScopedDb) -> list[dict[str, Any]]:
    return await search_people(db, "", limit=100)


async def test_the_address_decides_who_it_is(db: ScopedDb) -> None:
    fjord = await company(db)
    first = await saved(db, "Per Hansen", "per@fjord.example", company_id=fjord)
    again = await saved(db, "Per  HANSEN", "mailto:PER@Fjord.example", phone="+47 555")
    married = await saved(db, "Per Solberg", "per@fjord.example")
    other = await saved(db, "Per Hansen", "per2@fjord.example", company_id=fjord)
    assert first.id == again.id == married.id != other.id
    assert [each.changed for each in (again, married)] == [("phone",), ("name",)]
    found = await get_person(db, UUID(first.id))
    assert (found["name"], found["email"], found["phone"], found["company"]) == (
        "Per Solberg",
        "per@fjord.example",
        "+47 555",
        "Fjord AS",
    )


async def test_a_name_decides_within_a_company_and_takes_the_address_that_comes_later(db: ScopedDb) -> None:
    fjord, havn = await company(db), await company(db, "Havn A/S")
    first = await saved(db, "Per Hansen", company_id=fjord)
    elsewhere = await saved(db, "Per Hansen", company_id=havn)
    known = await saved(db, "per hansen", "per@fjord.example", company_id=fjord)
    by_name = await saved(db, "PER HANSEN", company_id=fjord, city="Bergen")
    assert first.id == known.id == by_name.id != elsewhere.id
    second = await saved(db, "Per Hansen", "other@fjord.example", company_id=fjord)
    assert second.created


async def test_a_name_without_a_company_is_one_person_and_never_somebody_with_an_address(db: ScopedDb) -> None:
    first = await saved(db, "Per Hansen")
    again = await saved(db, "PER hansen", city="Oslo")
    reachable = await saved(db, "Per Hansen", "per@fjord.example")
    at_work = await saved(db, "Per Hansen", company_id=await company(db))
    assert first.id == again.id
    assert len({first.id, reachable.id, at_work.id}) == 3


MENTIONS: tuple[dict[str, Any], ...] = (
    {"name": "Per Hansen", "city": "Bergen"},
    {"name": "PER hansen", "email": "per@fjord.example", "job_title": "CTO"},
    {"name": "Per Hansen", "email": "PER@fjord.example", "notes": "Wants a pilot"},
)


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_mentions_of_one_person_make_the_same_row_in_any_order(db: ScopedDb, order: tuple[int, ...]) -> None:
    fjord = await company(db)
    for number in order:
        await saved(db, **MENTIONS[number], company_id=fjord)
    (row,) = await everybody(db)
    shown = {column: row[column] for column in ("email", "city", "job_title", "notes", "company")}
    assert shown == {
        "email": "per@fjord.example",
        "city": "Bergen",
        "job_title": "CTO",
        "notes": "Wants a pilot",
        "company": "Fjord AS",
    }


async def test_upserts_at_once_of_a_person_who_was_not_there_make_one(db: ScopedDb) -> None:
    fjord = await company(db)
    for turn in range(5):
        answers = await asyncio.gather(
            *(
                saved(
                    db, f"Per {turn}", f"per{turn}@fjord.example" if n % 2 else None, company_id=fjord, city=f"City {n}"
                )
                for n in range(8)
            )
        )
        assert len({each.id for each in answers}) == 1
        assert [each.created for each in answers].count(True) == 1
    assert len(await everybody(db)) == 5


async def test_writers_of_different_fields_at_once_lose_nothing_and_the_person_is_found_by_all_of_them(
    db: ScopedDb,
) -> None:
    await saved(db, "Per Hansen", "per@fjord.example")
    fields = {"city": "Bergen", "country": "Norway", "job_title": "Driftschef", "phone": "+47 555"}
    await asyncio.gather(
        *(saved(db, "Per Hansen", "per@fjord.example", **{field: value}) for field, value in fields.items())
    )
    (row,) = await search_people(db, "bergen norway driftschef", limit=5)
    assert {field: (await get_person(db, UUID(str(row["id"]))))[field] for field in fields} == fields


async def test_a_company_that_is_not_there_is_not_found_and_nobody_is_made(db: ScopedDb) -> None:
    gone = await company(db)
    await delete_company(db, gone)
    for missing in (uuid4(), gone):
        with pytest.raises(NotFound, match="no company"):
            await saved(db, "Per Hansen", "per@fjord.example", company_id=missing)
    assert await everybody(db) == []


async def test_a_deleted_person_is_in_no_answer_and_the_address_is_free(db: ScopedDb) -> None:
    old = await saved(db, "Per Hansen", "per@fjord.example", city="Bergen")
    assert await delete_person(db, UUID(old.id)) is True
    assert await delete_person(db, UUID(old.id)) is False
    assert await everybody(db) == []
    with pytest.raises(NotFound, match="search for people"):
        await get_person(db, UUID(old.id))
    new = await saved(db, "Per Hansen", "per@fjord.example")
    assert new.id != old.id
    assert (await get_person(db, UUID(new.id)))["city"] is None


async def test_a_deleted_company_is_not_shown_with_its_people(db: ScopedDb) -> None:
    fjord = await company(db, domain="fjord.example")
    per = await saved(db, "Per Hansen", "per@fjord.example", company_id=fjord)
    assert [(row["company"], row["company_domain"]) for row in await everybody(db)] == [("Fjord AS", "fjord.example")]
    await delete_company(db, fjord)
    found = await get_person(db, UUID(per.id))
    assert (found["company"], found["company_domain"]) == (None, None)


async def test_people_are_found_by_words_of_anything_shown_of_them_and_by_their_company(db: ScopedDb) -> None:
    fjord, havn = await company(db, "Fjord Analytics AS"), await company(db, "Havn A/S")
    for name, at, title in (
        ("Søren Kjærgaard", havn, "CTO"),
        ("Per Hansen", fjord, "CTO"),
        ("Łukasz Zając", fjord, "CFO"),
    ):
        await saved(db, name, f"{name[0].lower()}@x.example", company_id=at, job_title=title)

    async def names(query: str, company_id: UUID | None = None) -> list[str]:
        return [str(row["name"]) for row in await search_people(db, query, limit=10, company_id=company_id)]

    assert await names("CTO fjord") == ["Per Hansen"]
    assert await names("lukasz zajac") == ["Łukasz Zając"]
    assert await names("p@x.example") == ["Per Hansen"]
    assert await names("cto", havn) == ["Søren Kjærgaard"]
    assert await names("%") == await names("_") == await names("' or 1=1") == []
