"""Another organization sees and changes nothing, by any of the tools' ways (T1)."""

from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import NotFound
from agentic.contract.trust import Trust
from agentic.services.tools.handlers.crm import companies, lists, people
from agentic.services.tools.handlers.crm.facts import CompanyFacts, PersonFacts
from agentic.services.tools.handlers.memory import remembered
from agentic.services.tools.handlers.memory.remembered import Subject
from agentic.services.tools.scoped_db import ScopedDatabase


@pytest.mark.guarantee("T1")
async def test_the_ids_and_names_of_one_organization_lead_nowhere_in_another(tables: ScopedDatabase) -> None:
    ours, theirs = tables.of(uuid4()), tables.of(uuid4())
    fjord = UUID((await companies.upsert_company(ours, CompanyFacts(name="Fjord", domain="fjord.example"))).id)
    per = UUID(
        (await people.upsert_person(ours, PersonFacts(name="Per", email="per@fjord.example", company_id=fjord))).id
    )
    pilot, _ = await lists.add(ours, "Spring pilot", [per])
    about_per = Subject(kind="person", ref=per)
    memory, _ = await remembered.remember(
        ours, about_per, "preference", "language", text="Norwegian", source=None, trust=Trust.USER
    )
    before = (await people.get_person(ours, per), await companies.get_company(ours, fjord))

    assert await people.search_people(theirs, "", limit=10) == []
    assert await people.search_people(theirs, "", limit=10, company_id=fjord) == []
    assert await companies.search_companies(theirs, "", limit=10) == []
    assert await lists.search_lists(theirs, "", limit=10) == []
    assert (await lists.page(theirs, UUID(str(pilot["id"])), limit=10, offset=0)).people == []
    assert await remembered.recall(theirs, about_per, kind=None, query="", limit=10) == []
    for refused in (
        people.get_person(theirs, per),
        people.delete_person(theirs, per),
        people.upsert_person(theirs, PersonFacts(name="Per", company_id=fjord)),
        companies.get_company(theirs, fjord),
        companies.delete_company(theirs, fjord),
        lists.get_list(theirs, UUID(str(pilot["id"]))),
        lists.add(theirs, "Spring pilot", [per]),
        lists.remove(theirs, "Spring pilot", [per]),
        remembered.require(theirs, about_per),
        remembered.forget(theirs, UUID(memory), user_id=None),
    ):
        with pytest.raises(NotFound):
            await refused

    same = await people.upsert_person(theirs, PersonFacts(name="Somebody else", email="per@fjord.example"))
    other = await companies.upsert_company(theirs, CompanyFacts(name="Fjord", domain="fjord.example", city="Elsewhere"))
    assert same.created and other.created
    assert {same.id, other.id}.isdisjoint({str(per), str(fjord)})
    assert (await people.get_person(ours, per), await companies.get_company(ours, fjord)) == before
    assert len((await lists.page(ours, UUID(str(pilot["id"])), limit=10, offset=0)).people) == 1
    assert len(await remembered.recall(ours, about_per, kind=None, query="", limit=10)) == 1
