"""Somebody else's write between two statements of an upsert: each window once, on purpose."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.services.tools.handlers.crm.companies import delete_company, search_companies, upsert_company
from agentic.services.tools.handlers.crm.facts import CompanyFacts
from agentic.services.tools.handlers.crm.keyed import Saved
from agentic.services.tools.handlers.errors import RetryableUpstreamError
from agentic.services.tools.scoped_db import KeyTaken, ScopedDatabaseOver, ScopedDb, ScopedRows
from agentic.services.tools.scoped_queries import Insert, Query, Row, Select, Update
from agentic.services.tools.scoped_tables import ORG_SCOPED_TABLES
from scoped_stage import PSYCOPG, Stage

Meanwhile = Callable[[], Awaitable[Any]]


class Interrupted:
    """The tables, where something happens once right before the first statement of a kind."""

    def __init__(self, rows: ScopedRows, kind: type[Query], meanwhile: Meanwhile) -> None:
        self._rows = rows
        self._kind = kind
        self._meanwhile: Meanwhile | None = meanwhile

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        if isinstance(query, self._kind) and self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            await meanwhile()
        return await self._rows.run(organization_id, query)


def over(rows: ScopedRows, organization_id: UUID) -> ScopedDb:
    return ScopedDatabaseOver(rows, tables=ORG_SCOPED_TABLES).of(organization_id)


async def saved(db: ScopedDb, name: str, domain: str | None = None, **facts: Any) -> Saved:
    return await upsert_company(db, CompanyFacts(name=name, domain=domain, **facts))


DOMAIN = "nordlys.example"


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        (Insert, DOMAIN, DOMAIN),
        (Insert, DOMAIN, None),
        (Insert, None, DOMAIN),
        (Insert, None, None),
        (Update, DOMAIN, DOMAIN),
        (Update, DOMAIN, None),
    ],
)
async def test_a_company_that_somebody_else_makes_in_between_is_the_one(
    stage: Stage, kind: type[Query], ours: str | None, theirs: str | None
) -> None:
    async with stage.rows(PSYCOPG) as rows:
        organization = uuid4()
        db = over(rows, organization)
        between = Interrupted(rows, kind, lambda: saved(db, "NORDLYS", theirs, industry="Light"))
        mine = await saved(over(between, organization), "Nordlys", ours, city="Oslo")
        (row,) = await search_companies(db, "", limit=10)
        assert (row["id"], row["city"], row["industry"]) == (mine.id, "Oslo", "Light")
        assert row["domain"] == (ours or theirs)


async def test_a_domain_that_somebody_else_takes_under_another_name_in_between_leaves_one_company(stage: Stage) -> None:
    async with stage.rows(PSYCOPG) as rows:
        organization = uuid4()
        db = over(rows, organization)
        between = Interrupted(rows, Update, lambda: saved(db, "Aurora", DOMAIN))
        mine = await saved(over(between, organization), "Nordlys", DOMAIN, city="Oslo")
        (row,) = await search_companies(db, "", limit=10)
        assert (row["id"], row["name"], row["city"], mine.created) == (mine.id, "Aurora", "Oslo", False)


async def test_a_row_that_is_deleted_in_between_is_made_again(stage: Stage) -> None:
    async with stage.rows(PSYCOPG) as rows:
        organization = uuid4()
        db = over(rows, organization)
        old = await saved(db, "Nordlys", DOMAIN)

        async def delete() -> None:
            await delete_company(db, UUID(old.id))

        mine = await saved(over(Interrupted(rows, Update, delete), organization), "Nordlys", DOMAIN, city="Oslo")
        assert mine.created
        assert [row["id"] for row in await search_companies(db, "", limit=10)] == [mine.id]


class Contended:
    """Tables where somebody else is always a little faster."""

    async def run(self, organization_id: UUID, query: Query) -> list[Row]:
        if isinstance(query, Select):
            return []
        raise KeyTaken("crm_companies", "crm_companies_one_per_name")


async def test_whoever_never_gets_through_is_told_to_come_again() -> None:
    with pytest.raises(RetryableUpstreamError, match="may be made again"):
        await saved(over(Contended(), uuid4()), "Nordlys")
