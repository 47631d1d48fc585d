"""Lists: one a name, each person on one once, nobody who was deleted."""

import asyncio
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.services.tools.handlers.crm import lists
from agentic.services.tools.handlers.crm.facts import PersonFacts
from agentic.services.tools.handlers.crm.people import delete_person, upsert_person
from agentic.services.tools.scoped_db import ScopedDb


async def person(db: ScopedDb, name: str) -> UUID:
    return UUID((await upsert_person(db, PersonFacts(name=name))).id)


async def names(db: ScopedDb, list_id: object, *, limit: int = 50, offset: int = 0) -> list[str]:
    page = await lists.page(db, UUID(str(list_id)), limit=limit, offset=offset)
    return [str(row["name"]) for row in page.people]


async def test_a_list_is_made_once_a_name_however_it_is_written_and_at_once(db: ScopedDb) -> None:
    made = await asyncio.gather(*(lists.create_list(db, name) for name in ("Spring pilot", "spring PILOT") * 4))
    assert len({row["id"] for row, _ in made}) == 1
    assert [created for _, created in made].count(True) == 1
    assert [row["id"] for row in await lists.search_lists(db, "PILOT", limit=5)] == [made[0][0]["id"]]


async def test_a_person_is_put_on_a_list_once_however_often_and_at_once(db: ScopedDb) -> None:
    per, ida = await person(db, "Per"), await person(db, "Ida")
    answers = await asyncio.gather(*(lists.add(db, name, [per]) for name in ("Spring pilot", "spring pilot") * 3))
    assert sorted(len(added) for _, added in answers) == [0] * 5 + [1]
    row, added = await lists.add(db, "Spring pilot", [per, ida, ida])
    assert added == [str(ida)]
    assert await names(db, row["id"]) == ["Per", "Ida"]


async def test_one_who_is_not_there_keeps_everybody_off_and_the_list_unmade(db: ScopedDb) -> None:
    per, gone = await person(db, "Per"), await person(db, "Ida")
    await delete_person(db, gone)
    for missing in (uuid4(), gone):
        with pytest.raises(NotFound, match=str(missing)):
            await lists.add(db, "Spring pilot", [per, missing])
    assert await lists.search_lists(db, "", limit=5) == []


async def test_whoever_is_taken_off_is_off_and_taking_off_again_changes_nothing(db: ScopedDb) -> None:
    per, ida = await person(db, "Per"), await person(db, "Ida")
    row, _ = await lists.add(db, "Spring pilot", [per, ida])
    assert (await lists.remove(db, "SPRING pilot", [per, uuid4()]))[1] == [str(per)]
    assert (await lists.remove(db, "Spring pilot", [per]))[1] == []
    assert await names(db, row["id"]) == ["Ida"]
    with pytest.raises(NotFound, match="no list"):
        await lists.remove(db, "Autumn pilot", [ida])


async def test_a_deleted_person_is_on_no_list(db: ScopedDb) -> None:
    per, ida = await person(db, "Per"), await person(db, "Ida")
    row, _ = await lists.add(db, "Spring pilot", [per, ida])
    await delete_person(db, per)
    assert await names(db, row["id"]) == ["Ida"]


async def test_a_long_list_is_read_in_pages_in_the_order_people_came(db: ScopedDb) -> None:
    people = [await person(db, f"Person {number}") for number in range(5)]
    for one in people:
        row, _ = await lists.add(db, "Spring pilot", [one])
    list_id = UUID(str(row["id"]))
    assert await names(db, list_id, limit=2) == ["Person 0", "Person 1"]
    assert (await lists.page(db, list_id, limit=2, offset=0)).more is True
    assert await names(db, list_id, limit=2, offset=4) == ["Person 4"]
    assert (await lists.page(db, list_id, limit=2, offset=3)).more is False


async def test_a_list_that_is_not_there_is_not_found(db: ScopedDb) -> None:
    with pytest.raises(NotFound, match="search for lists"):
        await lists.get_list(db, uuid4())
