"""One stage a worker; each test asks by one adapter, or by both."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agentic.services.tools.scoped_db import ScopedDatabase
from scoped_stage import ADAPTERS, Stage, stage_over


@pytest.fixture(scope="session")
def stage(entrance: str, postgres_dsn: str, server: psycopg.Connection, template: str) -> Iterator[Stage]:
    name = f"scoped_{uuid4().hex[:12]}"
    server.execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))
    database, direct = (urlsplit(url)._replace(path=f"/{name}").geturl() for url in (entrance, postgres_dsn))
    with stage_over(database, direct) as made:
        yield made
    server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def db(stage: Stage, adapter: str) -> AsyncIterator[ScopedDatabase]:
    async with stage.tables(adapter) as found:
        yield found
