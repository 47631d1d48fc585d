"""A file goes in by the rules of the tools: as often as one likes, from wherever it stopped."""

import dataclasses
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.local.demo.casting import SAMPLE
from agentic.services.tools.handlers.crm.companies import search_companies, upsert_company
from agentic.services.tools.handlers.crm.facts import CompanyFacts, PersonFacts
from agentic.services.tools.handlers.crm.importing import Entered, ImportReport, enter, load_contacts
from agentic.services.tools.handlers.crm.people import delete_person, search_people, upsert_person
from agentic.services.tools.scoped_db import ScopedDatabase, ScopedDatabaseOver, ScopedDb, ScopedRows
from agentic.services.tools.scoped_queries import Query, Row
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from scoped_stage import PSYCOPG, Stage

FEW = """name,email,company,domain,title,city
Per Hansen,per@fjord.example,Fjord AS,fjord.example,CTO,Bergen
Ida Berg,,Fjord AS,,,
IDA BERG,,FJORD as,,Driftschef,
Jo Lie,jo@havn.example,Havn,,,
Jo Lie,,Havn,,CFO,
Kari Moe,,,,,Oslo
"""


def load(folder: Path, content: str) -> ImportReport:
    path = folder / "contacts.csv"
    path.write_text(content)
    return load_contacts(path)


async def shown(db: ScopedDb) -> list[dict[str, Any]]:
    """Everything that is in the CRM but ids and moments."""
    people, companies = await search_people(db, "", limit=500), await search_companies(db, "", limit=500)
    hidden = {"id", "company_id", "created_at", "updated_at"}
    rows = [{column: value for column, value in row.items() if column not in hidden} for row in (*people, *companies)]
    return sorted(rows, key=str)


def counts(entered: Entered) -> list[tuple[int, ...]]:
    return [dataclasses.astuple(tally) for tally in (entered.people, entered.companies)]


async def test_the_shipped_export_goes_in_whole_and_a_second_time_changes_nothing(db: ScopedDb) -> None:
    report = load_contacts(SAMPLE)
    assert counts(await enter(db, report)) == [(51, 0, 0), (30, 0, 0)]
    rows = await search_people(db, "", limit=500)
    assert [row["name"] for row in rows[:3]] == ["Per Hansen", "Ingrid Solberg", "Søren Kjærgaard"]
    assert counts(await enter(db, report)) == [(0, 0, 51), (0, 0, 30)]
    assert await search_people(db, "", limit=500) == rows


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("muller", ["Anna Müller", "Jörg Müller"]),
        ("MÜLLER anna", ["Anna Müller"]),
        ("lukasz", ["Łukasz Wiśniewski"]),
        ("saimaa cfo", ["Mikko Järvinen"]),
        ("per@fjord.example", ["Per Hansen"]),
        ("nobody at all", []),
    ],
)
async def test_people_of_the_export_are_found_without_case_and_accents(
    db: ScopedDb, query: str, names: list[str]
) -> None:
    await enter(db, load_contacts(SAMPLE))
    assert [found["name"] for found in await search_people(db, query, limit=20)] == names


async def test_a_file_changes_what_it_says_and_leaves_the_rest(db: ScopedDb, tmp_path: Path) -> None:
    fjord = await upsert_company(db, CompanyFacts(name="Fjord AS", industry="Data"))
    facts = PersonFacts(name="Per Hansen", company_id=UUID(fjord.id), phone="+47 555", job_title="Intern")
    per = await upsert_person(db, facts)
    assert counts(await enter(db, load(tmp_path, FEW))) == [(3, 1, 0), (1, 1, 0)]
    (row,) = await search_people(db, "per hansen", limit=5)
    assert (row["id"], row["email"], row["phone"], row["job_title"]) == (per.id, "per@fjord.example", "+47 555", "CTO")
    (company,) = await search_companies(db, "fjord", limit=5)
    assert (company["id"], company["domain"], company["industry"]) == (fjord.id, "fjord.example", "Data")


async def test_two_names_of_the_file_that_are_one_company_of_the_crm_give_one_person_who_stays_as_they_are(
    db: ScopedDb, tmp_path: Path
) -> None:
    await upsert_company(db, CompanyFacts(name="Fjord", domain="fjord.example"))
    report = load(
        tmp_path, "name,email,company,domain,title\nPer,,Fjord,,CTO\nPer,,Fjord Analytics,fjord.example,CFO\n"
    )
    assert len(report.contacts) == 2
    assert counts(await enter(db, report)) == [(1, 0, 0), (0, 0, 2)]
    assert counts(await enter(db, report)) == [(0, 0, 1), (0, 0, 2)]
    assert [row["job_title"] for row in await search_people(db, "", limit=5)] == ["CTO"]


async def test_somebody_who_was_deleted_comes_back_new_and_not_as_they_were(db: ScopedDb, tmp_path: Path) -> None:
    await enter(db, load(tmp_path, FEW))
    (old,) = await search_people(db, "per hansen", limit=5)
    await upsert_person(db, PersonFacts(name="Per Hansen", email="per@fjord.example", notes="asked to be forgotten"))
    await delete_person(db, UUID(str(old["id"])))
    await enter(db, load(tmp_path, FEW))
    (new,) = await search_people(db, "per hansen", limit=5)
    assert new["id"] != old["id"]
    assert new["notes"] is None


async def test_bad_rows_are_named_by_their_line_and_the_good_ones_go_in(db: ScopedDb, tmp_path: Path) -> None:
    long = "x" * 201
    report = load(
        tmp_path,
        f'name,email,company,notes\nPer,per@x.example,A,"two\nlines"\n,,A,\n{long},long@x.example,A,\nIda,ida@x.example,A,,more\nJo,,{long},\nKari,kari@x.example,A,\n',
    )
    assert [(bad.line, bad.why.split(";")[0].split(" has")[0]) for bad in report.bad] == [
        (4, "neither a name nor an email"),
        (5, "name: String should have at most 200 characters"),
        (6, "more cells than the heading"),
        (7, "name: String should have at most 200 characters"),
    ]
    assert long not in str(report.bad)
    assert counts(await enter(db, report))[0] == (2, 0, 0)


class Killed(BaseException):
    """The process ends here."""


class Dying:
    """The tables of a process that is killed right after a number of statements."""

    def __init__(self, rows: ScopedRows, after: int) -> None:
        self._rows = rows
        self.left = after

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        found = await self._rows.run(organization_id, query)
        self.left -= 1
        if self.left == 0:
            raise Killed
        return found


@pytest.mark.guarantee("J3")
async def test_an_import_that_was_killed_after_any_statement_and_ran_again_leaves_what_an_undisturbed_one_does(
    stage: Stage, tmp_path: Path
) -> None:
    report = load(tmp_path, FEW)
    async with stage.rows(PSYCOPG) as rows:
        counting = Dying(rows, after=-1)
        undisturbed = _tables(counting).of(uuid4())
        await enter(undisturbed, report)
        statements = -1 - counting.left
        expected = await shown(undisturbed)
        assert statements > 15
        for after in range(1, statements + 1):
            organization = uuid4()
            with pytest.raises(Killed):
                await enter(_tables(Dying(rows, after)).of(organization), report)
            db = _tables(rows).of(organization)
            await enter(db, report)
            assert await shown(db) == expected, f"killed after statement {after}"
            assert counts(await enter(db, report)) == [(0, 0, 4), (0, 0, 2)]


def _tables(rows: ScopedRows) -> ScopedDatabase:
    return ScopedDatabaseOver(rows, tables=ORG_SCOPED_TABLES)
