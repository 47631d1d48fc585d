"""What a call costs in statements and commits, by the benchmark's own counts. Times are nobody's promise and are not looked at."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agentic.contract.errors import ProgramFault
from benchmarks.measure import Figures, measure
from benchmarks.stage import Stage, open_stage
from benchmarks.workloads import ALLOWED_WRITE, BARE, METERED_READ, METERED_WRITE, READ, REPLAY, Workload

SHORT_S = 0.2


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    async with open_stage() as made:
        yield made


async def cost(stage: Stage, workload: Workload, workers: int) -> Figures:
    found = await measure(stage, workload, workers=workers, seconds=SHORT_S)
    assert found.calls >= workers
    return found


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
WORKERS = pytest.mark.parametrize("workers", [1, 4])


@WORKERS
async def test_an_allowed_write_is_three_statements_and_two_commits(stage: Stage, workers: int) -> None:
    found = await cost(stage, ALLOWED_WRITE, workers)
    assert (found.statements, found.transactions, found.commits) == (3, 3, 2)


@WORKERS
async def test_a_metered_call_locks_its_tree_in_the_round_trip_of_its_hold_and_needs_no_other(
    stage: Stage, workers: int
) -> None:
    for workload in (METERED_READ, METERED_WRITE):
        found = await cost(stage, workload, workers)
        assert (found.statements, found.transactions, found.commits) == (4, 3, 2), workload.name


@WORKERS
async def test_a_replay_is_one_statement_and_commits_nothing(stage: Stage, workers: int) -> None:
    found = await cost(stage, REPLAY, workers)
    assert (found.statements, found.transactions, found.commits) == (1, 1, 0)


@WORKERS
async def test_an_unmetered_read_is_one_statement_and_commits_nothing_before_its_answer(
    stage: Stage, workers: int
) -> None:
    found = await cost(stage, READ, workers)
    assert (found.statements, found.transactions, found.commits) == (1, 1, 0)


async def test_the_ceiling_is_one_statement_and_one_commit(stage: Stage) -> None:
    found = await cost(stage, BARE, 1)
    assert (found.statements, found.commits) == (1, 1)
    assert 0 < found.wal_bytes < 16 * 1024


async def test_a_statement_that_goes_past_the_count_spoils_the_measurement(stage: Stage) -> None:
    async def prepare(on: Stage) -> object:
        async def step() -> None:
            async with on.platform.database.pool.connection() as connection:
                await connection.execute("select 1")

        return step

    hidden = Workload(name="hidden", prepare=prepare)  # type: ignore[arg-type]
    with pytest.raises(ProgramFault, match="where 0 were sent"):
        await measure(stage, hidden, workers=1, seconds=0.01)
