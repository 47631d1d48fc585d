"""What dies is made up for: the engine, the app, the database connection. Runs go on where they were."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import inngest
import psycopg
from engine_bench import WAIT_S, Bench

HERE = Path(__file__).parent
PROCESS_START_S = 30.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def _process(script: str, *arguments: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / script), *map(str, arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        await _kill(process)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    await process.communicate()


class Story:
    """The app of `app_process.py`, its ledger and its gate."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.ledger, self.gate = folder / "ledger", folder / "gate"
        self.ledger.touch()

    @contextlib.asynccontextmanager
    async def app(self) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
        port = _free_port()
        url = f"http://127.0.0.1:{port}/api/inngest"
        async with _process("app_process.py", port, self.bench.engine.url, self.ledger, self.gate) as process:
            async with asyncio.timeout(PROCESS_START_S), httpx.AsyncClient() as http:
                while True:
                    with contextlib.suppress(httpx.ConnectError):
                        await http.get(url)
                        break
                    await asyncio.sleep(0.02)
            yield process, url

    def lines(self) -> list[str]:
        return [line.rpartition(" ")[0] for line in self.ledger.read_text(encoding="utf-8").splitlines()]

    async def until_noted(self, line: str, times: int = 1) -> None:
        async def noted() -> bool:
            return self.lines().count(line) >= times

        await self.bench.until(noted)


async def _tried_in_vain(bench: Bench, *, attempt: int, times: int) -> None:
    """Wait until the only call there is was tried this often without reaching its app."""

    async def tried() -> bool:
        with psycopg.connect(bench.dsn) as connection:
            row = connection.execute("select attempt, unreachable_count from agentic_engine.jobs").fetchone()
            return row is not None and row[0] == attempt and row[1] >= times

    await bench.until(tried)


async def test_a_run_goes_on_after_its_engine_was_killed_in_mid_call(bench: Bench, tmp_path: Path) -> None:
    story = Story(bench, tmp_path)
    port = int(bench.engine.url.rpartition(":")[2])
    async with story.app() as (_, url):
        await bench.engine.sync(url)
        await bench.engine.stop()
        async with _process("engine_process.py", bench.dsn, port, 1.0) as engine:
            assert engine.stdout is not None
            async with asyncio.timeout(PROCESS_START_S):
                assert await engine.stdout.readline() == b"ready\n"
            await bench.send("told")
            await story.until_noted("two attempt 0")
            await _kill(engine)
        bench.engine = bench.build_engine(port=port)
        await bench.engine.start()
        await story.until_noted("two attempt 0", times=2)
        story.gate.touch()
        assert (await bench.run_of("story-told")).result == "told"
    assert story.lines() == ["one attempt 0", "two attempt 0", "two attempt 0", "three attempt 0"]


async def test_a_step_whose_app_was_killed_runs_again_in_the_next_one(bench: Bench, tmp_path: Path) -> None:
    story = Story(bench, tmp_path)
    async with story.app() as (first, first_url), story.app() as (_, next_url):
        await bench.engine.sync(first_url)
        await bench.send("told")
        await story.until_noted("two attempt 0")
        await _kill(first)
        story.gate.touch()
        await _tried_in_vain(bench, attempt=1, times=1)
        await bench.engine.sync(next_url)
        assert (await bench.run_of("story-told")).result == "told"
    # The call that died is an attempt; looking for an app that is not there is none.
    assert story.lines() == ["one attempt 0", "two attempt 0", "two attempt 1", "three attempt 0"]


async def test_an_app_that_is_away_costs_no_attempt_and_may_come_back_elsewhere(bench: Bench) -> None:
    attempts: list[int] = []

    @bench.client.create_function(fn_id="naps", retries=0, trigger=inngest.TriggerEvent(event="naps"))
    async def naps(ctx: inngest.Context) -> str:
        await ctx.step.sleep("nap", 3_600_000)
        attempts.append(ctx.attempt)
        return "rested"

    async with bench.passing() as passing:
        await passing.serve(naps)
        await bench.send("naps")
        await bench.waiting("shop-naps", "nap")
    bench.jump(3601)
    await _tried_in_vain(bench, attempt=0, times=3)
    await bench.serve(naps)
    assert (await bench.run_of("shop-naps")).result == "rested"
    assert attempts == [0]  # it has no retries: one attempt was all it had


async def test_an_app_that_stays_away_too_long_fails_its_runs(bench: Bench) -> None:
    @bench.client.create_function(fn_id="lost", retries=1, trigger=inngest.TriggerEvent(event="lost"))
    async def lost(ctx: inngest.Context) -> None: ...

    async with bench.passing() as passing:
        await passing.serve(lost)
    await bench.send("lost")
    for attempt in (0, 1):
        await _tried_in_vain(bench, attempt=attempt, times=1)
        bench.jump(601)
    run = await bench.run_of("shop-lost", "failed")
    assert "was not reached for 600 s" in run.result["message"]


async def test_a_sleep_outlives_the_engine(bench: Bench) -> None:
    @bench.client.create_function(fn_id="naps", trigger=inngest.TriggerEvent(event="naps"))
    async def naps(ctx: inngest.Context) -> str:
        await ctx.step.sleep("nap", 3_600_000)
        return "rested"

    await bench.serve(naps)
    await bench.send("naps")
    await bench.waiting("shop-naps", "nap")
    await bench.restart_engine()
    assert (await bench.waiting("shop-naps", "nap")).status == "running"
    bench.jump(3601)
    assert (await bench.run_of("shop-naps")).result == "rested"


async def test_an_engine_that_is_stopped_lets_its_calls_end(bench: Bench) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    @bench.client.create_function(fn_id="slow", trigger=inngest.TriggerEvent(event="slow"))
    async def slow(ctx: inngest.Context) -> str:
        inside.set()
        await leave.wait()
        return "done"

    await bench.serve(slow)
    await bench.send("slow")
    async with asyncio.timeout(WAIT_S):
        await inside.wait()
    stopping = asyncio.create_task(bench.engine.stop(grace_s=WAIT_S))
    leave.set()
    await stopping
    bench.engine = bench.build_engine()
    await bench.engine.start()
    assert (await bench.engine.runs("shop-slow"))[0].result == "done"


async def test_lost_database_connections_are_made_up_for(bench: Bench) -> None:
    @bench.client.create_function(fn_id="ping", trigger=inngest.TriggerEvent(event="ping"))
    async def ping(ctx: inngest.Context) -> str:
        with psycopg.connect(bench.dsn, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        return "pong"

    await bench.serve(ping)
    await bench.send("ping")

    async def answered() -> bool:
        with psycopg.connect(bench.dsn) as connection:
            row = connection.execute("select status from agentic_engine.runs").fetchone()
            return row is not None and row[0] == "completed"

    await bench.until(answered)
    assert (await bench.run_of("shop-ping")).result == "pong"
