"""When runs start and how long they may take: rates, debounces, batches, singletons, priorities, time-outs, scopes."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import httpx
import inngest
import psycopg
import pytest
from engine_bench import WAIT_S, Bench

from agentic.local.engine import RegistrationRefused

SECOND = datetime.timedelta(seconds=1)
ON = inngest.TriggerEvent(event="go")


async def test_events_beyond_a_rate_limit_start_nothing_until_its_period_is_over(bench: Bench) -> None:
    seen: list[object] = []

    @bench.client.create_function(
        fn_id="rated", rate_limit=inngest.RateLimit(limit=1, period=60 * SECOND, key="event.data.org"), trigger=ON
    )
    async def rated(ctx: inngest.Context) -> None:
        seen.append(ctx.event.data["n"])

    await bench.serve(rated)
    for n, org in enumerate("aab"):
        await bench.send("go", {"n": n, "org": org})
    await bench.engine.idle(WAIT_S)
    assert sorted(map(str, seen)) == ["0", "2"]
    bench.jump(61)
    await bench.send("go", {"n": 3, "org": "a"})
    await bench.engine.idle(WAIT_S)
    assert sorted(map(str, seen)) == ["0", "2", "3"]


async def test_runs_beyond_a_throttle_start_later_and_in_order(bench: Bench) -> None:
    seen: list[object] = []

    @bench.client.create_function(
        fn_id="throttled", throttle=inngest.Throttle(limit=1, period=60 * SECOND, burst=0), trigger=ON
    )
    async def throttled(ctx: inngest.Context) -> None:
        seen.append(ctx.event.data["n"])

    await bench.serve(throttled)
    for n in range(3):
        await bench.send("go", {"n": n})
    for count in (1, 2, 3):
        await bench.until(lambda count=count: _completed(bench, count))  # type: ignore[misc]
        assert seen == list(range(count))
        await bench.restart_engine()  # the places that were given out are kept
        bench.jump(60)


async def test_a_debounced_function_starts_once_with_the_last_event(bench: Bench) -> None:
    seen: list[object] = []

    @bench.client.create_function(fn_id="calm", debounce=inngest.Debounce(period=60 * SECOND), trigger=ON)
    async def calm(ctx: inngest.Context) -> None:
        seen.append(ctx.event.data["n"])

    await bench.serve(calm)
    for n in range(3):
        await bench.send("go", {"n": n})
        bench.jump(50)
    await bench.engine.idle(WAIT_S)
    assert seen == []
    await bench.restart_engine()  # what it holds is kept
    bench.jump(11)
    await bench.run_of("shop-calm")
    await bench.engine.idle(WAIT_S)
    assert seen == [2]


async def test_a_debounce_with_a_time_out_starts_though_events_keep_coming(bench: Bench) -> None:
    @bench.client.create_function(
        fn_id="calm", debounce=inngest.Debounce(period=60 * SECOND, timeout=90 * SECOND), trigger=ON
    )
    async def calm(ctx: inngest.Context) -> Any:
        return ctx.event.data["n"]

    await bench.serve(calm)
    for n in range(2):
        await bench.send("go", {"n": n})
        bench.jump(46)
    assert (await bench.run_of("shop-calm")).result == 1


async def test_a_batch_starts_when_it_is_full_or_its_time_is_over(bench: Bench) -> None:
    @bench.client.create_function(
        fn_id="batch",
        batch_events=inngest.Batch(
            max_size=3, timeout=60 * SECOND, key="event.data.org", if_exp="event.data.urgent != true"
        ),
        trigger=ON,
    )
    async def batch(ctx: inngest.Context) -> Any:
        return [event.data["n"] for event in ctx.events]

    await bench.serve(batch)
    for n, org in enumerate("aabab"):
        await bench.send("go", {"n": n, "org": org, "urgent": False})
    await bench.send("go", {"n": 5, "org": "b", "urgent": True})
    await bench.engine.idle(WAIT_S)
    assert sorted(map(str, await _results(bench, "shop-batch"))) == ["[0, 1, 3]", "[5]"]
    await bench.restart_engine()
    bench.jump(61)
    await bench.until(lambda: _runs(bench, "shop-batch", 3))
    await bench.engine.idle(WAIT_S)
    assert [2, 4] in await _results(bench, "shop-batch")


@pytest.mark.parametrize(("mode", "statuses"), [("skip", ["completed"]), ("cancel", ["cancelled", "completed"])])
async def test_a_singleton_runs_once_at_a_time_for_each_key(bench: Bench, mode: Any, statuses: list[str]) -> None:
    @bench.client.create_function(
        fn_id="single", singleton=inngest.Singleton(mode=mode, key="event.data.org"), trigger=ON
    )
    async def single(ctx: inngest.Context) -> None:
        await ctx.step.sleep("nap", 60 * SECOND)

    await bench.serve(single)
    for org in "aab":
        await bench.send("go", {"org": org})
    await bench.engine.idle(WAIT_S)
    bench.jump(61)
    await bench.engine.idle(WAIT_S)
    runs = [run for run in await bench.engine.runs("shop-single") if run.event["data"]["org"] == "a"]
    assert [run.status for run in runs] == statuses
    before = len(await bench.engine.runs("shop-single"))
    await bench.send("go", {"org": "a"})  # the key is free again
    assert len(await bench.engine.runs("shop-single")) == before + 1


async def test_interactive_runs_go_before_batch_runs_that_came_first(bench: Bench) -> None:
    seen: list[object] = []
    held = asyncio.Event()

    @bench.client.create_function(
        fn_id="lanes",
        concurrency=[inngest.Concurrency(limit=1)],
        priority=inngest.Priority(run="event.data.lane == 'interactive' ? 120 : 0"),
        trigger=ON,
    )
    async def lanes(ctx: inngest.Context) -> None:
        if not seen:
            seen.append("first")
            async with asyncio.timeout(WAIT_S):
                await held.wait()
            return
        seen.append(ctx.event.data["n"])

    await bench.serve(lanes)
    await bench.send("go", {"lane": "batch", "n": 0})
    await bench.until(lambda: _reached(seen, 1))
    for n, lane in enumerate(["batch", "batch", "interactive", "interactive"], start=1):
        await bench.send("go", {"lane": lane, "n": n})
    held.set()
    await bench.engine.idle(WAIT_S)
    assert seen == ["first", 3, 4, 1, 2]


async def test_a_limit_beyond_one_function_counts_the_calls_of_all(bench: Bench) -> None:
    inside: dict[object, int] = {}
    most: dict[object, int] = {}

    def declare(fn_id: str, key: str) -> inngest.Function[Any]:
        @bench.client.create_function(
            fn_id=fn_id,
            concurrency=[
                inngest.Concurrency(limit=1, key=key, scope="env"),
                inngest.Concurrency(limit=2, key="'all'", scope="account"),
            ],
            trigger=inngest.TriggerEvent(event=fn_id),
        )
        async def work(ctx: inngest.Context) -> None:
            org = ctx.event.data["org"]
            for counted in (org, "all"):
                inside[counted] = inside.get(counted, 0) + 1
                most[counted] = max(most.get(counted, 0), inside[counted])
            await asyncio.sleep(0.02)  # stands for work; overlap is what is measured
            for counted in (org, "all"):
                inside[counted] -= 1

        return work

    await bench.serve(declare("one", "event.data.org"), declare("two", "event.data['org']"))
    events = [inngest.Event(name=name, data={"org": org}) for name in ("one", "two") for org in "aabbcc"]
    await bench.client.send(events)
    await bench.engine.idle(WAIT_S)
    assert most == {"a": 1, "b": 1, "c": 1, "all": 2}


async def test_a_limit_that_is_raised_frees_the_runs_that_are_there(bench: Bench) -> None:
    together = asyncio.Barrier(2)
    inside: list[object] = []

    def declare(limit: int) -> inngest.Function[Any]:
        @bench.client.create_function(fn_id="work", concurrency=[inngest.Concurrency(limit=limit)], trigger=ON)
        async def work(ctx: inngest.Context) -> None:
            inside.append(ctx.run_id)
            async with asyncio.timeout(WAIT_S):
                await together.wait()

        return work

    await bench.serve(declare(1))
    for _ in range(2):
        await bench.send("go")
    await bench.until(lambda: _reached(inside, 1))
    await bench.serve(declare(2))
    await bench.engine.idle(WAIT_S)
    assert len(set(inside)) == 2


async def test_an_engine_takes_over_the_tables_of_an_older_one(bench: Bench) -> None:
    @bench.client.create_function(fn_id="naps", trigger=ON)
    async def naps(ctx: inngest.Context) -> str:
        await ctx.step.sleep("nap", 3600 * SECOND)
        return "rested"

    await bench.serve(naps)
    await bench.send("go")
    await bench.waiting("shop-naps", "nap")
    port = int(bench.engine.url.rpartition(":")[2])
    await bench.engine.stop()
    with psycopg.connect(bench.dsn) as connection:
        for column in ("events", "priority", "singleton", "start_by", "begun_at", "finish_s", "finish_by"):
            connection.execute(f"alter table agentic_engine.runs drop column {column}".encode())
        for table in ("held", "rates", "inbox"):
            connection.execute(f"drop table agentic_engine.{table}".encode())
    bench.engine = bench.build_engine(port=port)
    await bench.engine.start()
    bench.jump(3601)
    assert (await bench.run_of("shop-naps")).result == "rested"


async def test_a_run_that_is_not_called_in_time_is_cancelled(bench: Bench) -> None:
    @bench.client.create_function(fn_id="late", timeouts=inngest.Timeouts(start=60 * SECOND), trigger=ON)
    async def late(ctx: inngest.Context) -> None:
        await ctx.step.sleep("nap", 3600 * SECOND)

    async with bench.passing() as passing:
        await passing.serve(late)
        await bench.send("go", {"n": "called"})
        await bench.waiting("shop-late", "nap")
    await bench.send("go", {"n": "not called"})
    bench.jump(61)
    await bench.run_of("shop-late", "cancelled")
    statuses = {run.event["data"]["n"]: run.status for run in await bench.engine.runs("shop-late")}
    assert statuses == {"called": "running", "not called": "cancelled"}


@pytest.mark.parametrize(
    "settings",
    [
        {"rate_limit": inngest.RateLimit(limit=1, period=3600 * SECOND)},
        {"singleton": inngest.Singleton(mode="skip")},
    ],
    ids=["rate limit", "singleton"],
)
async def test_an_invocation_that_is_dropped_is_an_error_of_its_step_at_once(bench: Bench, settings: Any) -> None:
    @bench.client.create_function(fn_id="scarce", trigger=inngest.TriggerEvent(event="scarce"), **settings)
    async def scarce(ctx: inngest.Context) -> object:
        await ctx.step.sleep("nap", 3600 * SECOND)
        return "rested"

    @bench.client.create_function(fn_id="asks", trigger=ON)
    async def asks(ctx: inngest.Context) -> list[object]:
        async def ask(step: str) -> object:
            try:
                return await ctx.step.invoke(step, function=scarce)
            except inngest.StepError as error:
                return error.name

        return list(await ctx.group.parallel((lambda: ask("one"), lambda: ask("two"))))

    await bench.serve(scarce, asks)
    await bench.send("go")
    assert (await bench.waiting("shop-asks", "one")).waits_for == ("one",)
    bench.jump(3601)
    assert (await bench.run_of("shop-asks")).result == ["rested", "InvocationDropped"]


async def test_a_run_that_does_not_end_in_time_is_cancelled_and_reported(bench: Bench) -> None:
    reports: list[object] = []

    @bench.client.create_function(fn_id="long", timeouts=inngest.Timeouts(finish=60 * SECOND), trigger=ON)
    async def long(ctx: inngest.Context) -> None:
        await ctx.step.sleep("nap", 3600 * SECOND)

    @bench.client.create_function(
        fn_id="hears",
        trigger=inngest.TriggerEvent(
            event="inngest/function.cancelled", expression="event.data.function_id == 'shop-long'"
        ),
    )
    async def hears(ctx: inngest.Context) -> None:
        reports.append(ctx.event.data["run_id"])

    await bench.serve(long, hears)
    await bench.send("go")
    await bench.waiting("shop-long", "nap")
    bench.jump(61)
    run = await bench.run_of("shop-long", "cancelled")
    assert "did not finish" in run.result["message"]
    await bench.run_of("shop-hears")
    assert reports == [run.run_id]


async def test_a_function_may_listen_to_every_end_and_comes_to_rest(bench: Bench) -> None:
    ends: list[object] = []

    @bench.client.create_function(fn_id="works", trigger=ON)
    async def works(ctx: inngest.Context) -> str:
        return "done"

    @bench.client.create_function(fn_id="hears", trigger=inngest.TriggerEvent(event="inngest/function.finished"))
    async def hears(ctx: inngest.Context) -> None:
        ends.append((ctx.event.data["function_id"], ctx.event.data["result"]))

    await bench.serve(works, hears)
    await bench.send("go")
    await bench.engine.idle(WAIT_S)
    assert ends == [("shop-works", "done")]


async def test_a_run_is_cancelled_by_its_id_and_its_parent_is_told(bench: Bench) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    @bench.client.create_function(fn_id="child", retries=0, trigger=inngest.TriggerEvent(event="child"))
    async def child(ctx: inngest.Context) -> object:
        inside.set()
        async with asyncio.timeout(WAIT_S):
            await leave.wait()
        return "too late"

    @bench.client.create_function(fn_id="parent", trigger=ON)
    async def parent(ctx: inngest.Context) -> str:
        try:
            return str(await ctx.step.invoke("child", function=child))
        except inngest.StepError as error:
            return error.message

    await bench.serve(child, parent)
    await bench.send("go")
    async with asyncio.timeout(WAIT_S):
        await inside.wait()
    (run,) = await bench.engine.runs("shop-child")
    async with httpx.AsyncClient(base_url=bench.engine.url) as http:
        assert (await http.delete(f"/v1/runs/{run.run_id}")).status_code == 200
        leave.set()  # the call in flight still ends; what it says comes too late
        assert (await bench.run_of("shop-parent")).result == "cancelled by request"
        await bench.engine.idle(WAIT_S)
        assert (await http.delete(f"/v1/runs/{run.run_id}")).status_code == 200
        assert (await http.delete("/v1/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV")).status_code == 404
    assert [run.status for run in await bench.engine.runs("shop-child")] == ["cancelled"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"concurrency": [inngest.Concurrency(limit=n + 1) for n in range(3)]}, "3 concurrency rules"),
        ({"concurrency": [inngest.Concurrency(limit=1, scope="env")]}, "scope env without a key"),
        ({"priority": inngest.Priority(run="event.data.lane ==")}, "cannot read the expression"),
        ({"rate_limit": inngest.RateLimit(limit=0, period=60 * SECOND)}, "less than one"),
        ({"rate_limit": inngest.RateLimit(limit=1, period=25 * 3600 * SECOND)}, "more than 24 hours"),
        ({"debounce": inngest.Debounce(period=8 * 24 * 3600 * SECOND)}, "between 1 second and 7 days"),
        ({"batch_events": inngest.Batch(max_size=1, timeout=SECOND)}, "less than two events"),
        ({"cancel": [inngest.Cancel(event=f"stop.{n}") for n in range(6)]}, "6 cancel events"),
        (
            {
                "batch_events": inngest.Batch(max_size=2, timeout=SECOND),
                "debounce": inngest.Debounce(period=SECOND),
            },
            "batchEvents and debounce, which exclude each other",
        ),
    ],
)
async def test_what_the_real_server_refuses_is_refused_here(bench: Bench, settings: Any, says: str) -> None:
    @bench.client.create_function(fn_id="odd", trigger=ON, **settings)
    async def odd(ctx: inngest.Context) -> None: ...

    with pytest.raises(RegistrationRefused, match=says):
        await bench.serve(odd)


async def _reached(items: list[object], count: int) -> bool:
    return len(items) >= count


async def _completed(bench: Bench, count: int) -> bool:
    return [run.status for run in await bench.engine.runs()].count("completed") >= count


async def _runs(bench: Bench, function_id: str, count: int) -> bool:
    return len(await bench.engine.runs(function_id)) >= count


async def _results(bench: Bench, function_id: str) -> list[Any]:
    return [run.result for run in await bench.engine.runs(function_id)]
