"""Nothing that happens to tasks or connections costs the pool its capacity, with and without a pooler in between."""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from agentic.storage.database import Database
from agentic.storage.pool import open_pool
from transaction_pooler import SERVER_CONNECTIONS

SIZE = 4
HOT = "select %(n)s::int as n, pg_sleep(%(s)s)"


@pytest.fixture(params=["direct", "pooled"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_database"))


@pytest.fixture
async def database_(place: str) -> AsyncIterator[Database]:
    async with open_pool(place, max_size=SIZE) as pool:
        yield Database(pool)


async def full_capacity(database: Database) -> set[int]:
    """As many statements at once as there are connections: each waits in the server until all of them are there."""
    together = asyncio.Barrier(SIZE)

    async def hold() -> int:
        async with database.pool.connection(timeout=20) as connection:
            await together.wait()
            await connection.execute("select 1")
            return id(connection)

    return set(await asyncio.wait_for(asyncio.gather(*(hold() for _ in range(SIZE))), timeout=30))


def kill_all(server: psycopg.Connection, place: str) -> int:
    """End every server connection of a database; how many there were."""
    name = conninfo_to_dict(place)["dbname"]
    killed = server.execute(
        "select count(*) filter (where pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = %s",
        (name,),
    ).fetchone()
    assert killed is not None
    return int(killed[0])


@pytest.mark.parametrize("seed", range(3))
async def test_two_hundred_cancelled_tasks_and_a_killed_server_leave_the_pool_whole(
    database_: Database, place: str, server: psycopg.Connection, seed: int
) -> None:
    chance = random.Random(seed)
    statements = [0]

    async def work(number: int) -> None:
        for again in range(5):
            row = await database_.one(HOT, {"n": number + again, "s": 0.002})
            assert row is not None
            assert row["n"] == number + again  # nobody reads another's answer
            statements[0] += 1

    tasks = [asyncio.create_task(work(number)) for number in range(200)]
    for task in chance.sample(tasks, len(tasks)):
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.005]))
        task.cancel()
    ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=30)
    assert [end for end in ended if end is not None and not isinstance(end, asyncio.CancelledError)] == []
    assert statements[0] > 0
    assert len(await full_capacity(database_)) == SIZE

    assert kill_all(server, place) > 0
    began = time.monotonic()
    row = await database_.one("select 7 as answer", {})
    assert row == {"answer": 7}
    assert time.monotonic() - began < 1
    assert len(await full_capacity(database_)) == SIZE


async def test_after_the_server_dropped_every_connection_every_next_call_works(
    database_: Database, place: str, server: psycopg.Connection
) -> None:
    await full_capacity(database_)
    kill_all(server, place)
    rows = await asyncio.wait_for(
        asyncio.gather(*(database_.one("select %(n)s::int as n", {"n": n}) for n in range(SIZE * 3))), timeout=5
    )
    assert rows == [{"n": n} for n in range(SIZE * 3)]


async def test_many_clients_share_two_server_connections_without_a_statement_lost(pooled_database: str) -> None:
    """The journal's hot path: plain statements and pipelines, over and over, with never the same server behind them."""
    async with open_pool(pooled_database, max_size=8) as pool:
        database = Database(pool)

        async def client(number: int) -> list[int]:
            seen: list[int] = []
            for again in range(10):
                row = await database.one(HOT, {"n": number * 10 + again, "s": 0})
                rows = await database.atomic([(HOT, {"n": again, "s": 0}), ("select %(n)s::int as n", {"n": number})])
                assert [found["n"] for found in rows if found] == [again, number]
                assert row is not None
                seen.append(row["n"])
            return seen

        seen = await asyncio.wait_for(asyncio.gather(*(client(number) for number in range(8))), timeout=30)
        slow = (database.one("select pg_backend_pid() as pid, pg_sleep(0.01)", {}) for _ in range(24))
        servers = await asyncio.wait_for(asyncio.gather(*slow), timeout=30)
    assert len({server["pid"] for server in servers if server}) == SERVER_CONNECTIONS
    assert sorted(number for numbers in seen for number in numbers) == list(range(80))


async def test_nothing_follows_the_sync_of_a_pipeline(direct_database: str) -> None:
    """A pooler has let go of the server by then; it would take another one for whatever follows, and keep it."""
    async with open_pool(direct_database, max_size=1) as pool:
        database = Database(pool)
        with tempfile.TemporaryFile("w+") as sent:
            async with pool.connection() as connection:
                connection.pgconn.trace(sent.fileno())
            await database.atomic([(HOT, {"n": 1, "s": 0.01}), (HOT, {"n": 2, "s": 0})])
            with pytest.raises(psycopg.errors.DivisionByZero):
                await database.atomic(
                    [(HOT, {"n": 1, "s": 0}), ("select 1 / %(n)s", {"n": 0}), (HOT, {"n": 2, "s": 0})]
                )
            assert (await database.one(HOT, {"n": 3, "s": 0})) is not None
            async with pool.connection() as connection:
                connection.pgconn.untrace()
            sent.seek(0)
            said = [line.split("\t")[3].strip() for line in sent if line.split("\t")[1] == "F"]
    assert said.count("Sync") == 3
    assert "Flush" not in said


async def test_what_a_pipeline_sets_for_itself_no_other_client_sees(pooled_database: str) -> None:
    async with open_pool(pooled_database, max_size=8) as pool:
        database = Database(pool)

        async def client(number: int) -> list[str | None]:
            set_own = ("select set_config('test.tenant', %(n)s, true)", {"n": str(number)})
            rows = await database.atomic(
                [set_own, ("select current_setting('test.tenant') as tenant, pg_sleep(0.001)", {})]
            )
            outside = await database.one("select nullif(current_setting('test.tenant', true), '') as tenant", {})
            assert outside is not None
            return [*(row["tenant"] for row in rows[1:] if row), outside["tenant"]]

        seen = await asyncio.wait_for(asyncio.gather(*(client(number) for number in range(40))), timeout=30)
    assert seen == [[str(number), None] for number in range(40)]


async def test_who_waits_through_an_outage_is_served_when_the_database_is_back_though_the_pool_gave_up_meanwhile(
    direct_database: str, server: psycopg.Connection
) -> None:
    name = sql.Identifier(str(conninfo_to_dict(direct_database)["dbname"]))
    async with open_pool(direct_database, max_size=SIZE, reconnect_s=0.05) as pool:
        database = Database(pool)
        server.execute(sql.SQL("alter database {} with allow_connections false").format(name))
        kill_all(server, direct_database)
        waiting = asyncio.create_task(database.one(HOT, {"n": 7, "s": 0}))
        while pool.get_stats().get("connections_errors", 0) < 3 * SIZE:  # noqa: ASYNC110 - each gave up, more than once; nobody tells
            await asyncio.sleep(0.01)
        assert not waiting.done()
        server.execute(sql.SQL("alter database {} with allow_connections true").format(name))
        row = await waiting
        assert row is not None
        assert row["n"] == 7
        assert len(await full_capacity(database)) == SIZE
