import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.local.demo.crm import (
    SAMPLE,
    add_to_list,
    ensure_schema,
    list_people,
    load_contacts,
    replace_contacts,
    search_people,
    upsert_company,
)
from agentic.storage.pool import Pool, open_pool

OURS, THEIRS = uuid4(), uuid4()


@pytest.fixture
async def crm(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database) as pool:
        await ensure_schema(pool)
        await replace_contacts(pool, OURS, load_contacts(SAMPLE))
        yield pool


async def person(pool: Pool, query: str, organization_id: UUID = OURS) -> UUID:
    (found,) = await search_people(pool, organization_id, query)
    return found.id


async def count(pool: Pool, table: str, organization_id: UUID) -> int:
    async with pool.connection() as connection:
        cursor = await connection.execute(
            f"select count(*) as n from demo_crm.{table} where organization_id = %s", (organization_id,)
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


async def test_the_schema_may_be_made_again_by_several_at_once_and_keeps_its_rows(crm: Pool) -> None:
    await asyncio.gather(*(ensure_schema(crm) for _ in range(4)))
    assert await count(crm, "people", OURS) == 51


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("muller", ["Anna Müller", "Jörg Müller"]),
        ("MÜLLER anna", ["Anna Müller"]),
        ("lukasz", ["Łukasz Wiśniewski"]),
        ("saimaa cfo", ["Mikko Järvinen"]),
        ("per@fjord.example", ["Per Hansen"]),
        ("%", []),
        ("_", []),
        ("nobody at all", []),
    ],
)
async def test_people_are_found_by_every_word_without_case_and_accents(crm: Pool, query: str, names: list[str]) -> None:
    assert [found.name for found in await search_people(crm, OURS, query)] == names


async def test_a_search_is_bounded_and_in_the_exports_order(crm: Pool) -> None:
    found = await search_people(crm, OURS, "", limit=3)
    assert [person.name for person in found] == ["Per Hansen", "Ingrid Solberg", "Søren Kjærgaard"]
    assert found[0].company == "Fjord Analytics AS"
    for limit in (0, 101):
        with pytest.raises(ValueError, match="1 to 100"):
            await search_people(crm, OURS, "", limit=limit)


@pytest.mark.guarantee("T1")
async def test_another_organization_sees_and_changes_nothing(crm: Pool) -> None:
    per = await person(crm, "per@fjord.example")
    assert await search_people(crm, THEIRS, "") == []
    with pytest.raises(NotFound):
        await add_to_list(crm, THEIRS, "Spring pilot", per)
    theirs, created = await upsert_company(crm, THEIRS, "Fjord Analytics AS", "fjord.example", city="Elsewhere")
    ours, ours_created = await upsert_company(crm, OURS, "Fjord Analytics AS", "fjord.example")
    assert (created, ours_created) == (True, False)
    assert theirs != ours
    await replace_contacts(crm, THEIRS, load_contacts(SAMPLE))
    assert await person(crm, "per@fjord.example") == per
    assert await list_people(crm, THEIRS, "Spring pilot") == []


@pytest.mark.guarantee("T1")
async def test_a_users_key_reads_nothing_of_the_crm(crm: Pool) -> None:
    async with crm.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute("grant usage on schema demo_crm to authenticated")
        await connection.execute("grant select on all tables in schema demo_crm to authenticated")
        await connection.execute("set local role authenticated")
        for table in ("people", "companies", "lists", "list_members"):
            assert (await connection.execute(f"select from demo_crm.{table}")).rowcount == 0


async def test_a_company_is_made_once_and_found_by_its_domain_or_its_name(crm: Pool) -> None:
    first, created = await upsert_company(crm, OURS, "Polarlys Studio")
    named, _ = await upsert_company(crm, OURS, " polarlys  STUDIO ", "Polarlys.example", city="Tromsø")
    by_domain, _ = await upsert_company(crm, OURS, "Polarlys Studio AS", "polarlys.example")
    other, other_created = await upsert_company(crm, OURS, "Polarlys Studio", "polarlys.test")
    assert (created, other_created) == (True, True)
    assert first == named == by_domain != other


async def test_an_upsert_sets_what_is_given_and_keeps_the_rest(crm: Pool) -> None:
    company, _ = await upsert_company(crm, OURS, "Polarlys", "polarlys.example", industry="Design", city="Tromsø")
    await upsert_company(crm, OURS, "Polarlys", "polarlys.example", city="Oslo")
    async with crm.connection() as connection:
        cursor = await connection.execute(
            "select industry, city from demo_crm.companies where organization_id = %s and id = %s", (OURS, company)
        )
        assert await cursor.fetchone() == {"industry": "Design", "city": "Oslo"}


async def test_companies_upserted_at_once_become_one(crm: Pool) -> None:
    before = await count(crm, "companies", OURS)
    answers = await asyncio.gather(
        *(upsert_company(crm, OURS, "Polarlys", "polarlys.example" if turn % 2 else None) for turn in range(8))
    )
    assert len({company for company, _ in answers}) == 1
    assert [created for _, created in answers].count(True) == 1
    assert await count(crm, "companies", OURS) == before + 1


@pytest.mark.parametrize("name", ["", "  "])
async def test_a_blank_name_is_refused(crm: Pool, name: str) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        await upsert_company(crm, OURS, name, "x.example")
    with pytest.raises(ValueError, match="needs a name"):
        await add_to_list(crm, OURS, name, await person(crm, "per@fjord.example"))


async def test_a_person_is_put_on_a_list_once_however_often_and_at_once(crm: Pool) -> None:
    per, ida = await person(crm, "per@fjord.example"), await person(crm, "ida@nordlys.example")
    answers = await asyncio.gather(
        *(add_to_list(crm, OURS, name, per) for name in ("Spring pilot", "spring  PILOT") * 3)
    )
    assert sorted(answers) == [False] * 5 + [True]
    assert await add_to_list(crm, OURS, "Spring pilot", ida)
    assert [found.name for found in await list_people(crm, OURS, "spring pilot")] == ["Per Hansen", "Ida Nordahl"]


async def test_an_unknown_person_is_not_found_and_makes_no_list(crm: Pool) -> None:
    with pytest.raises(NotFound, match="search for people"):
        await add_to_list(crm, OURS, "Spring pilot", uuid4())
    assert await count(crm, "lists", OURS) == 0


async def test_an_import_replaces_what_was_there_and_empties_the_lists(crm: Pool, tmp_path: Path) -> None:
    await add_to_list(crm, OURS, "Spring pilot", await person(crm, "per@fjord.example"))
    path = tmp_path / "c.csv"
    path.write_text("name,email,company\nNew Person,new@polarlys.example,Polarlys\n")
    await replace_contacts(crm, OURS, load_contacts(path))
    assert [found.name for found in await search_people(crm, OURS, "")] == ["New Person"]
    assert [await count(crm, table, OURS) for table in ("companies", "lists", "list_members")] == [1, 0, 0]
