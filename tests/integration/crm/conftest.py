"""The CRM of a new organization in each test, reached by both adapters; one database a worker."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agentic.services.tools.scoped_db import ScopedDatabase, ScopedDb
from scoped_stage import ADAPTERS, Stage, stage_over


@pytest.fixture(scope="session")
def stage(entrance: str, postgres_dsn: str, server: psycopg.Connection, template: str) -> Iterator[Stage]:
    name = f"crm_{uuid4().hex[:12]}"
    server.execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))
    database, direct = (urlsplit(url)._replace(path=f"/{name}").geturl() for url in (entrance, postgres_dsn))
    with stage_over(database, direct) as made:
        yield made
    server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(params=ADAPTERS)
async def tables(request: pytest.FixtureRequest, stage: Stage) -> AsyncIterator[ScopedDatabase]:
    async with stage.tables(str(request.param)) as found:
        yield found


@pytest.fixture
def db(tables: ScopedDatabase) -> ScopedDb:
    return tables.of(uuid4())
