"""A story of every kind of step, told by engines that are killed around their commits, ends as if nobody had died."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import inngest
import psycopg
import pytest
from engine_bench import WAIT_S, Bench

HERE = Path(__file__).parent
LIVES = 42
CYCLE = 7  # of engine_lives.py
TELLINGS = 2
STORY_S = 120.0
SECOND = datetime.timedelta(seconds=1)


class Story:
    """The functions of the story, and a note of each step that ran."""

    def __init__(self, client: inngest.Inngest) -> None:
        self.ran: Counter[str] = Counter()
        self.client = client

    async def note(self, what: str) -> str:
        self.ran[what] += 1
        return what

    def functions(self) -> list[inngest.Function[Any]]:
        on = inngest.TriggerEvent

        @self.client.create_function(fn_id="child", retries=20, trigger=on(event="child"))
        async def child(ctx: inngest.Context) -> object:
            return await ctx.step.run("work", self.note, f"child {ctx.event.data['n']}")

        @self.client.create_function(fn_id="broken", retries=0, trigger=on(event="broken"))
        async def broken(ctx: inngest.Context) -> None:
            raise inngest.NonRetriableError("it broke")

        @self.client.create_function(fn_id="side", retries=20, trigger=on(event="side"))
        async def side(ctx: inngest.Context) -> None:
            await ctx.step.run("note", self.note, "side")

        @self.client.create_function(fn_id="slow", retries=20, trigger=on(event="slow"))
        async def slow(ctx: inngest.Context) -> None:
            await ctx.step.sleep("hours", 3600 * SECOND)

        @self.client.create_function(fn_id="story", retries=20, trigger=on(event="story"))
        async def story(ctx: inngest.Context) -> list[Any]:
            await ctx.step.run("first", self.note, "first")
            left, invoked, answered, _ = await ctx.group.parallel(
                (
                    lambda: ctx.step.run("left", self.note, "left"),
                    lambda: ctx.step.invoke("call", function=child, data={"n": 1}),
                    lambda: self._wait(ctx),
                    lambda: ctx.step.sleep_until("nap", ctx_time(ctx) + SECOND),
                )
            )
            ids = await ctx.step.send_event("tell", inngest.Event(name="side", id=f"side-{ctx.run_id}"))
            said = []
            for step, call, timeout in (("breaks", broken, None), ("lasts", slow, SECOND)):
                try:
                    await ctx.step.invoke(step, function=call, timeout=timeout)
                except inngest.StepError as error:
                    said.append([error.name, error.message])
            unheard = await ctx.step.wait_for_event("unheard", event="never", timeout=SECOND)
            return [left, invoked, answered, len(ids), said, unheard]

        async def on_failure(ctx: inngest.Context) -> None:
            await ctx.step.run("note", self.note, "failure noted")

        @self.client.create_function(fn_id="fails", retries=1, on_failure=on_failure, trigger=on(event="fails"))
        async def fails(ctx: inngest.Context) -> None:
            raise ValueError("no way")

        @self.client.create_function(
            fn_id="stops",
            retries=20,
            cancel=[inngest.Cancel(event="stop", if_exp="event.data.id == async.data.id")],
            trigger=on(event="stops"),
        )
        async def stops(ctx: inngest.Context) -> None:
            await ctx.step.sleep("hours", 3600 * SECOND)

        return [child, broken, side, slow, story, fails, stops, *self.held_back()]

    def held_back(self) -> list[inngest.Function[Any]]:
        """Functions whose runs start later than their events come in."""
        client, on = self.client, inngest.TriggerEvent

        @client.create_function(
            fn_id="pairs", batch_events=inngest.Batch(max_size=2, timeout=3600 * SECOND), trigger=on(event="pairs")
        )
        async def pairs(ctx: inngest.Context) -> list[str]:
            return sorted(event.id for event in ctx.events)

        @client.create_function(fn_id="calm", debounce=inngest.Debounce(period=SECOND), trigger=on(event="calm"))
        async def calm(ctx: inngest.Context) -> None: ...

        @client.create_function(
            fn_id="spaced", throttle=inngest.Throttle(limit=1, period=SECOND, burst=0), trigger=on(event="spaced")
        )
        async def spaced(ctx: inngest.Context) -> None: ...

        return [pairs, calm, spaced]

    async def _wait(self, ctx: inngest.Context) -> object:
        event = await ctx.step.wait_for_event(
            "answer", event="answer", if_exp="event.data.id == async.data.id", timeout=3600 * SECOND
        )
        return event and event.data["id"]


def ctx_time(ctx: inngest.Context) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ctx.event.ts / 1000, datetime.UTC)


@contextlib.asynccontextmanager
async def _lives(bench: Bench, port: int, where: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "engine_lives.py"),
        bench.dsn,
        str(port),
        str(LIVES),
        where,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


async def _until_sent(bench: Bench, name: str, data: dict[str, Any], event_id: str) -> None:
    """Send an event until an engine took it in; its id keeps a second delivery from counting."""
    event = {"name": name, "data": data, "id": event_id}
    async with httpx.AsyncClient(base_url=bench.engine.url) as http:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await http.post("/e/key", json=event)).status_code == 200:
                    return
            await asyncio.sleep(0.02)


def _statuses(dsn: str) -> dict[str, list[str]]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select function_id, status from agentic_engine.runs order by function_id, status")
        found: dict[str, list[str]] = {}
        for function_id, status in rows:
            found.setdefault(function_id.removeprefix("shop-"), []).append(status)
    return found


@pytest.mark.timeout(STORY_S + 30)
@pytest.mark.guarantee("W2")
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_story_ends_as_if_no_engine_had_died(bench: Bench, where: str) -> None:
    story = Story(bench.client)
    await bench.serve(*story.functions())
    port = int(bench.engine.url.rpartition(":")[2])
    await bench.engine.stop()
    expected = {
        "story": ["completed"] * TELLINGS,
        "child": ["completed"] * TELLINGS,
        "broken": ["failed"] * TELLINGS,
        "slow": ["running"] * TELLINGS,
        "side": ["completed"] * TELLINGS,
        "fails": ["failed"],
        "fails-failure": ["completed"],
        "stops": ["cancelled", "running"],
        "pairs": ["completed"],
        "calm": ["completed"],
        "spaced": ["completed"] * 3,
    }
    async with _lives(bench, port, where) as process, asyncio.timeout(STORY_S):
        for telling in range(TELLINGS):
            # The answer to a wait that nobody has registered yet is lost; the same event twice tells one story.
            await _until_sent(bench, "answer", {"id": str(telling)}, f"early-{telling}")
            for _ in range(2):
                await _until_sent(bench, "story", {"id": str(telling)}, f"story-{telling}")
        await _until_sent(bench, "fails", {}, "fails")
        for which in ("mine", "other"):
            await _until_sent(bench, "stops", {"id": which}, f"stops-{which}")
        await _until_sent(bench, "stop", {"id": "mine"}, "stop")
        for name, count in (("pairs", 2), ("calm", 1), ("spaced", 3)):
            for n in (*range(count), *range(count)):
                await _until_sent(bench, name, {}, f"{name}-{n}")
        for sent in itertools.count():
            for telling in range(TELLINGS):
                await _until_sent(bench, "answer", {"id": str(telling)}, f"answer-{telling}-{sent}")
            if _statuses(bench.dsn) == expected:
                break
            await asyncio.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = await process.communicate()
    assert len(said.splitlines()) >= CYCLE * 3  # every place of the cycle was met, again and again

    bench.engine = bench.build_engine(port=port)
    await bench.engine.start()
    await bench.engine.idle(WAIT_S)
    assert _statuses(bench.dsn) == expected
    told = await bench.engine.runs("shop-story")
    assert sorted(str(run.result[2]) for run in told) == [str(telling) for telling in range(TELLINGS)]
    for run in told:
        timed_out = ["InngestInvokeTimeoutError", "the invoked function did not end in time"]
        broke = ["NonRetriableError", "it broke"]
        assert run.result == ["left", "child 1", run.event["data"]["id"], 1, [broke, timed_out], None]
        assert len({step.name for step in run.steps}) == len(run.steps) == 9
    (pair,) = await bench.engine.runs("shop-pairs")
    assert pair.result == ["pairs-0", "pairs-1"]
    (failure,) = await bench.engine.runs("shop-fails-failure")
    assert failure.event["data"]["error"]["message"] == "no way"
    assert set(story.ran) == {"first", "left", "child 1", "side", "failure noted"}
    assert min(story.ran[step] for step in ("first", "left", "child 1", "side")) >= TELLINGS
