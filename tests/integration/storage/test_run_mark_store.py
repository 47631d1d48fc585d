"""What a run remembers of a server is the same in every worker, once, and gone with the run."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from agentic.storage.run_mark_store import PostgresRunMarks
from mcp_rows import ServerRows, server_rows


@pytest.fixture
async def rows(database: str) -> AsyncIterator[ServerRows]:
    async with server_rows(database) as made:
        yield made


@pytest.fixture
def marks(rows: ServerRows) -> PostgresRunMarks:
    return PostgresRunMarks(rows.db)


async def test_of_many_calls_one_takes_the_re_authentication_of_a_run_and_a_server(
    rows: ServerRows, marks: PostgresRunMarks
) -> None:
    run, barrier = await rows.run(), asyncio.Barrier(8)

    async def take() -> bool:
        await barrier.wait()
        return await marks.take_renewal(run_id=run, server_id="notes")

    async with asyncio.timeout(30):
        taken = await asyncio.gather(*(take() for _ in range(8)))
    assert sum(taken) == 1
    assert not await PostgresRunMarks(rows.db).take_renewal(run_id=run, server_id="notes")
    assert await marks.take_renewal(run_id=run, server_id="other")
    assert await marks.take_renewal(run_id=await rows.run(), server_id="notes")


async def test_a_run_that_gave_up_on_a_server_has_given_up_in_every_worker(
    rows: ServerRows, marks: PostgresRunMarks
) -> None:
    run, other = await rows.run(), await rows.run()
    assert await marks.take_renewal(run_id=run, server_id="notes")
    assert not await marks.unauthorized(run_id=run, server_id="notes")
    for _ in range(2):
        await marks.give_up(run_id=run, server_id="notes")
    await marks.give_up(run_id=other, server_id="files")
    again = PostgresRunMarks(rows.db)
    assert await again.unauthorized(run_id=run, server_id="notes")
    assert not await again.unauthorized(run_id=run, server_id="files")
    assert not await again.unauthorized(run_id=other, server_id="notes")
    assert not await again.take_renewal(run_id=run, server_id="notes")
    assert await again.take_renewal(run_id=other, server_id="files"), "giving up does not take it"


async def test_the_marks_of_a_run_end_with_it_and_belong_to_its_organization(
    rows: ServerRows, marks: PostgresRunMarks
) -> None:
    run = await rows.run()
    await marks.give_up(run_id=run, server_id="notes")
    assert await rows.db.all("select organization_id from agent.mcp_run_marks", {}) == [
        {"organization_id": rows.organization_id}
    ]
    retention = "select set_config('agent.retention', 'on', true)"
    await rows.db.atomic([(retention, {}), ("delete from agent.runs where id = %(run)s", {"run": run})])
    assert await rows.db.all("select from agent.mcp_run_marks", {}) == []


async def test_a_run_that_is_not_there_takes_nothing(rows: ServerRows, marks: PostgresRunMarks) -> None:
    assert not await marks.take_renewal(run_id=uuid4(), server_id="notes")
    await marks.give_up(run_id=uuid4(), server_id="notes")
    assert await rows.db.all("select from agent.mcp_run_marks", {}) == []
