"""How runs go: once per event, retried, failed, timed, serialised, cancelled; with the SDK's own function objects."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import httpx
import inngest
import pytest
from engine_bench import WAIT_S, Bench
from inngest.experimental.ai.openai import Adapter as OpenAI

from agentic.local.engine import RegisteredElsewhere, RegistrationRefused

_BATCH = inngest.Batch(max_size=2, timeout=datetime.timedelta(seconds=5))


async def test_an_event_wakes_the_engine_which_does_not_wait_for_its_next_look(bench: Bench) -> None:
    started = 0

    @bench.client.create_function(fn_id="quick", trigger=inngest.TriggerEvent(event="quick"))
    async def quick(ctx: inngest.Context) -> None:
        nonlocal started
        started += 1

    await bench.restart_engine(poll_s=3600.0)
    await bench.serve(quick)
    for sent in range(1, 4):
        await bench.send("quick")
        await bench.engine.idle(WAIT_S)
        assert started == sent


async def test_a_text_that_was_cut_in_the_middle_of_an_emoji_goes_through_as_the_replacement_character(
    bench: Bench,
) -> None:
    @bench.client.create_function(fn_id="cut", trigger=inngest.TriggerEvent(event="cut"))
    async def cut(ctx: inngest.Context) -> object:
        async def again() -> object:
            return [ctx.event.data["text"], "b\udc00"]

        return await ctx.step.run("again", again)

    await bench.serve(cut)
    cut_off = r'{"name": "cut", "data": {"text": "a\ud83d \ud83d\ude00 \\ud83d"}}'
    async with httpx.AsyncClient(base_url=bench.engine.url) as http:
        await http.post("/e/key", content=cut_off, headers={"content-type": "application/json"})
    run = await bench.run_of("shop-cut")
    assert run.result == ["a\ufffd \U0001f600 \\ud83d", "b\ufffd"]


async def test_a_call_that_cannot_be_made_spends_its_attempts_and_fails_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    @bench.client.create_function(fn_id="odd", retries=1, trigger=inngest.TriggerEvent(event="odd"))
    async def odd(ctx: inngest.Context) -> None:
        raise AssertionError("it was called")

    def unsendable(*_: object, **__: object) -> dict[str, str]:
        return {"text": "\ud83d"}

    await bench.serve(odd)
    monkeypatch.setattr("agentic.local.engine.calls.request_body", unsendable)
    await bench.send("odd")
    run = await bench.run_of("shop-odd", "failed")
    assert "could not make the call" in str(run.result)


@pytest.mark.guarantee("W2")
async def test_the_same_event_id_starts_a_function_once_a_day(bench: Bench) -> None:
    seen: list[str] = []

    @bench.client.create_function(fn_id="once", trigger=inngest.TriggerEvent(event="once"))
    async def once(ctx: inngest.Context) -> None:
        seen.append(ctx.event.id)

    await bench.serve(once)
    await bench.send("once", event_id="order-1")
    await bench.send("once", event_id="order-1")
    await bench.send("once", event_id="order-2")
    await bench.engine.idle(WAIT_S)
    assert sorted(seen) == ["order-1", "order-2"]
    bench.jump(25 * 3600)
    await bench.send("once", event_id="order-1")
    await bench.engine.idle(WAIT_S)
    assert sorted(seen) == ["order-1", "order-1", "order-2"]


async def test_an_idempotency_expression_holds_back_events_with_the_same_key(bench: Bench) -> None:
    seen: list[object] = []

    @bench.client.create_function(
        fn_id="once", idempotency="event.data.order", trigger=inngest.TriggerEvent(event="once")
    )
    async def once(ctx: inngest.Context) -> None:
        seen.append(ctx.event.data["order"])

    await bench.serve(once)
    for order in (1, 1, 2):
        await bench.send("once", {"order": order})
    await bench.engine.idle(WAIT_S)
    assert sorted(map(str, seen)) == ["1", "2"]


async def test_a_request_of_events_sent_again_with_its_seed_starts_nothing_twice(bench: Bench) -> None:
    seen: list[str] = []

    @bench.client.create_function(fn_id="once", trigger=inngest.TriggerEvent(event="once"))
    async def once(ctx: inngest.Context) -> None:
        seen.append(ctx.event.id)

    await bench.serve(once)
    request = bench.client._build_send_request([inngest.Event(name="once"), inngest.Event(name="once")])
    assert not isinstance(request, Exception)
    http = bench.client._http_client._http_client
    first, second = (await http.send(request)).json(), (await http.send(request)).json()
    await bench.engine.idle(WAIT_S)
    assert first == second
    assert sorted(seen) == sorted(first["ids"])


async def test_a_failing_step_is_retried_up_to_its_attempts_and_then_fails_the_run(bench: Bench) -> None:
    attempts: list[int] = []
    failures: list[dict[str, Any]] = []

    async def on_failure(ctx: inngest.Context) -> None:
        failures.append(dict(ctx.event.data))

    @bench.client.create_function(
        fn_id="fails", retries=2, on_failure=on_failure, trigger=inngest.TriggerEvent(event="fails")
    )
    async def fails(ctx: inngest.Context) -> None:
        async def boom() -> None:
            attempts.append(ctx.attempt)
            raise ValueError("boom")

        await ctx.step.run("boom", boom)

    await bench.serve(fails)
    await bench.send("fails", {"order": 7})
    await bench.engine.idle(WAIT_S)
    assert attempts == [0, 1, 2]
    (run,) = await bench.engine.runs("shop-fails")
    assert run.status == "failed"
    assert run.result["message"] == "boom"
    (failure,) = failures
    assert (failure["function_id"], failure["run_id"]) == ("shop-fails", run.run_id)
    assert failure["event"]["data"] == {"order": 7}
    assert failure["error"]["message"] == "boom"


async def test_attempts_are_counted_anew_for_each_step(bench: Bench) -> None:
    attempts: list[tuple[str, int]] = []

    @bench.client.create_function(fn_id="flaky", retries=1, trigger=inngest.TriggerEvent(event="flaky"))
    async def flaky(ctx: inngest.Context) -> str:
        async def shaky(name: str) -> None:
            attempts.append((name, ctx.attempt))
            if ctx.attempt == 0:
                raise ValueError(name)

        await ctx.step.run("first", shaky, "first")
        await ctx.step.run("second", shaky, "second")
        return "done"

    await bench.serve(flaky)
    await bench.send("flaky")
    await bench.engine.idle(WAIT_S)
    assert attempts == [("first", 0), ("first", 1), ("second", 0), ("second", 1)]
    assert (await bench.run_of("shop-flaky")).result == "done"


async def test_a_non_retriable_error_is_not_retried(bench: Bench) -> None:
    attempts: list[int] = []

    @bench.client.create_function(fn_id="never", retries=5, trigger=inngest.TriggerEvent(event="never"))
    async def never(ctx: inngest.Context) -> None:
        attempts.append(ctx.attempt)
        raise inngest.NonRetriableError("no use")

    await bench.serve(never)
    await bench.send("never")
    await bench.engine.idle(WAIT_S)
    assert attempts == [0]
    assert (await bench.run_of("shop-never", "failed")).result["message"] == "no use"


async def test_retry_after_is_waited_for_instead_of_the_back_off(bench: Bench) -> None:
    attempts: list[int] = []

    @bench.client.create_function(fn_id="later", retries=1, trigger=inngest.TriggerEvent(event="later"))
    async def later(ctx: inngest.Context) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt == 0:
            raise inngest.RetryAfterError("later", datetime.timedelta(hours=1))

    await bench.serve(later)
    await bench.send("later")
    await bench.until(lambda: _true(attempts == [0]))
    bench.jump(3590)
    with pytest.raises(Exception, match="attempt 1"):
        await bench.engine.idle(0.3)
    assert attempts == [0]
    bench.jump(15)
    await bench.engine.idle(WAIT_S)
    assert attempts == [0, 1]


async def test_parallel_steps_run_at_the_same_time_and_each_once(bench: Bench) -> None:
    ran: list[str] = []
    together = asyncio.Barrier(2)

    @bench.client.create_function(fn_id="both", trigger=inngest.TriggerEvent(event="both"))
    async def both(ctx: inngest.Context) -> list[str]:
        async def half(name: str) -> str:
            ran.append(name)
            async with asyncio.timeout(WAIT_S):
                await together.wait()
            return name

        halves = await ctx.group.parallel(
            (lambda: ctx.step.run("left", half, "left"), lambda: ctx.step.run("right", half, "right"))
        )
        return list(halves)

    await bench.serve(both)
    await bench.send("both")
    assert (await bench.run_of("shop-both")).result == ["left", "right"]
    assert sorted(ran) == ["left", "right"]


async def test_a_racing_group_goes_on_without_its_slowest_step(bench: Bench) -> None:
    after: list[str] = []

    @bench.client.create_function(fn_id="race", trigger=inngest.TriggerEvent(event="race"))
    async def race(ctx: inngest.Context) -> list[Any]:
        async def note(name: str) -> str:
            after.append(name)
            return name

        async def chain() -> str:
            await ctx.step.run("first", note, "first")
            return await ctx.step.run("second", note, "second")

        async def slow() -> str:
            await ctx.step.sleep("nap", datetime.timedelta(hours=1))
            return await ctx.step.run("third", note, "third")

        return list(await ctx.group.parallel((chain, slow), inngest.ParallelMode.RACE))

    await bench.serve(race)
    await bench.send("race")
    await bench.until(lambda: _true(after == ["first", "second"]))
    bench.jump(3601)
    assert (await bench.run_of("shop-race")).result == ["second", "third"]
    assert after == ["first", "second", "third"]


async def test_keyed_concurrency_serialises_calls_that_share_the_key(bench: Bench) -> None:
    inside: dict[object, int] = {}
    most: dict[object, int] = {}
    apart = asyncio.Barrier(2)

    @bench.client.create_function(
        fn_id="busy",
        concurrency=[inngest.Concurrency(limit=1, key="event.data.run_id")],
        trigger=inngest.TriggerEvent(event="busy"),
    )
    async def busy(ctx: inngest.Context) -> None:
        key = ctx.event.data["run_id"]
        inside[key] = inside.get(key, 0) + 1
        most[key] = max(most.get(key, 0), inside[key])
        if ctx.event.data["meets"]:  # calls of different keys do overlap
            async with asyncio.timeout(WAIT_S):
                await apart.wait()
        await asyncio.sleep(0.05)  # stands for work; overlap is what is measured
        inside[key] -= 1

    await bench.serve(busy)
    runs = [("a", True), ("a", False), ("a", False), ("b", True)]
    await bench.client.send([inngest.Event(name="busy", data={"run_id": key, "meets": m}) for key, m in runs])
    await bench.engine.idle(WAIT_S)
    assert most == {"a": 1, "b": 1}


async def test_a_sleeping_run_leaves_room_for_others_of_its_key(bench: Bench) -> None:
    @bench.client.create_function(
        fn_id="lane",
        concurrency=[inngest.Concurrency(limit=1, key="event.data.run_id")],
        trigger=inngest.TriggerEvent(event="lane"),
    )
    async def lane(ctx: inngest.Context) -> None:
        if ctx.event.data["naps"]:
            await ctx.step.sleep("nap", datetime.timedelta(hours=1))

    await bench.serve(lane)
    await bench.send("lane", {"run_id": "r", "naps": True})
    await bench.waiting("shop-lane", "nap")
    await bench.send("lane", {"run_id": "r", "naps": False})
    await bench.run_of("shop-lane")


async def test_a_wait_is_over_with_the_event_that_matches_and_only_with_it(bench: Bench) -> None:
    @bench.client.create_function(fn_id="waits", trigger=inngest.TriggerEvent(event="waits"))
    async def waits(ctx: inngest.Context) -> Any:
        event = await ctx.step.wait_for_event(
            "answer",
            event="answer",
            if_exp="event.data.k == async.data.k && async.data.ok == true",
            timeout=datetime.timedelta(hours=1),
        )
        return event and dict(event.data)

    await bench.serve(waits)
    await bench.send("waits", {"k": "one"})
    await bench.waiting("shop-waits", "answer")
    await bench.send("answer", {"k": "two", "ok": True})
    await bench.send("answer", {"k": "one", "ok": False})
    await bench.waiting("shop-waits", "answer")
    await bench.send("answer", {"k": "one", "ok": True})
    assert (await bench.run_of("shop-waits")).result == {"k": "one", "ok": True}


@pytest.mark.guarantee("W2")
async def test_a_wait_that_nobody_answers_is_over_with_none(bench: Bench) -> None:
    @bench.client.create_function(fn_id="waits", trigger=inngest.TriggerEvent(event="waits"))
    async def waits(ctx: inngest.Context) -> str:
        event = await ctx.step.wait_for_event("answer", event="answer", timeout=datetime.timedelta(hours=1))
        return "nobody" if event is None else "somebody"

    await bench.serve(waits)
    await bench.send("answer")  # before the wait is registered: lost, as on the real server
    await bench.send("waits")
    await bench.waiting("shop-waits", "answer")
    bench.jump(3601)
    assert (await bench.run_of("shop-waits")).result == "nobody"


async def test_a_cancel_event_ends_the_runs_it_matches(bench: Bench) -> None:
    @bench.client.create_function(
        fn_id="long",
        cancel=[inngest.Cancel(event="stop", if_exp="event.data.k == async.data.k")],
        trigger=inngest.TriggerEvent(event="long"),
    )
    async def long(ctx: inngest.Context) -> str:
        await ctx.step.sleep("nap", datetime.timedelta(hours=1))
        return "slept"

    await bench.serve(long)
    for k in ("one", "two"):
        await bench.send("long", {"k": k})
        await bench.waiting("shop-long", "nap")
    await bench.send("stop", {"k": "one"})
    bench.jump(3601)
    await bench.engine.idle(WAIT_S)
    runs = await bench.engine.runs("shop-long")
    assert {run.event["data"]["k"]: run.status for run in runs} == {"one": "cancelled", "two": "completed"}


async def test_a_failed_invocation_is_an_error_of_the_step_that_invoked(bench: Bench) -> None:
    @bench.client.create_function(fn_id="child", retries=0, trigger=inngest.TriggerEvent(event="child"))
    async def child(ctx: inngest.Context) -> None:
        raise ValueError("the child fell")

    @bench.client.create_function(fn_id="parent", trigger=inngest.TriggerEvent(event="parent"))
    async def parent(ctx: inngest.Context) -> list[str]:
        said = []
        for step, target in (("call", "child"), ("call nobody", "nobody")):
            try:
                await ctx.step.invoke_by_id(step, function_id=target)
            except inngest.StepError as error:
                said.append(error.message)
        return said

    await bench.serve(child, parent)
    await bench.send("parent")
    result = (await bench.run_of("shop-parent")).result
    assert result == ["the child fell", "no app has registered function shop-nobody"]


async def test_a_cron_fires_once_a_period_and_makes_up_for_missed_periods_once(bench: Bench) -> None:
    fired: list[str] = []

    @bench.client.create_function(fn_id="hourly", trigger=inngest.TriggerCron(cron="0 * * * *"))
    async def hourly(ctx: inngest.Context) -> None:
        assert ctx.event.name == "inngest/scheduled.timer"
        fired.append(str(ctx.event.data["scheduledAt"]))

    url = await bench.serve(hourly)
    assert fired == []
    for hours in (1, 1, 5):
        bench.jump(hours * 3600)
        await _reaches(bench, fired, len(fired) + 1)
        await bench.engine.sync(url)  # a registration in between moves nothing
    await bench.engine.idle(WAIT_S)
    assert len(set(fired)) == len(fired) == 3


async def test_a_function_that_its_app_no_longer_lists_starts_no_more(bench: Bench) -> None:
    seen: list[str] = []

    def declare(fn_id: str) -> inngest.Function[Any]:
        @bench.client.create_function(fn_id=fn_id, trigger=inngest.TriggerEvent(event="ping"))
        async def handler(ctx: inngest.Context) -> None:
            seen.append(fn_id)

        return handler

    kept, dropped = declare("kept"), declare("dropped")
    await bench.serve(kept, dropped)
    await bench.serve(kept)
    await bench.send("ping")
    await bench.engine.idle(WAIT_S)
    assert seen == ["kept"]


async def test_what_the_engine_does_not_do_is_refused_by_name(bench: Bench) -> None:
    @bench.client.create_function(fn_id="slow", trigger=inngest.TriggerCron(cron="0 * * * *", jitter="5m"))
    async def slow(ctx: inngest.Context) -> None: ...

    with pytest.raises(RegistrationRefused, match=r"shop-slow declares a cron with jitter.*set INNGEST_DEV"):
        await bench.serve(slow)


async def test_a_step_that_the_engine_does_not_do_fails_the_run_by_name(bench: Bench) -> None:
    @bench.client.create_function(fn_id="batches", batch_events=_BATCH, trigger=inngest.TriggerEvent(event="b"))
    async def batches(ctx: inngest.Context) -> None: ...

    @bench.client.create_function(fn_id="asks", trigger=inngest.TriggerEvent(event="asks"))
    async def asks(ctx: inngest.Context) -> None:
        await ctx.step.invoke("batches", function=batches)

    await bench.serve(batches, asks)
    await bench.send("asks")
    run = await bench.run_of("shop-asks", "failed")
    assert "does not invoke shop-batches, which debounces or batches" in run.result["message"]


async def test_a_call_to_a_model_provider_is_not_made_and_its_key_not_kept(bench: Bench) -> None:
    @bench.client.create_function(fn_id="infers", retries=0, trigger=inngest.TriggerEvent(event="infers"))
    async def infers(ctx: inngest.Context) -> None:
        adapter = OpenAI(auth_key="sk-invented", base_url="http://127.0.0.1:9", model="any")
        await ctx.step.ai.infer("ask", adapter=adapter, body={})

    await bench.serve(infers)
    await bench.send("infers")
    result = (await bench.run_of("shop-infers", "failed")).result
    assert "does not do AIGateway; set INNGEST_DEV" in result["message"]
    assert "sk-invented" not in str(result)


async def test_an_app_that_registers_with_another_engine_is_named(bench: Bench) -> None:
    other = bench.build_engine()
    await other.start()
    try:

        @bench.client.create_function(fn_id="any", trigger=inngest.TriggerEvent(event="any"))
        async def handler(ctx: inngest.Context) -> None: ...

        url = await bench.serve(handler)
        with pytest.raises(RegisteredElsewhere, match=f"INNGEST_DEV={other.url}"):
            await other.sync(url)
    finally:
        await other.stop(grace_s=0)


async def test_two_engines_on_one_database_call_each_step_once(bench: Bench) -> None:
    ran: list[int] = []

    @bench.client.create_function(fn_id="many", trigger=inngest.TriggerEvent(event="many"))
    async def many(ctx: inngest.Context) -> None:
        async def note() -> None:
            ran.append(int(str(ctx.event.data["n"])))

        await ctx.step.run("note", note)

    await bench.serve(many)
    other = bench.build_engine()
    await other.start()
    try:
        await bench.client.send([inngest.Event(name="many", data={"n": n}) for n in range(20)])
        await bench.engine.idle(WAIT_S)
    finally:
        await other.stop(grace_s=0)
    assert sorted(ran) == list(range(20))


async def _reaches(bench: Bench, items: list[str], count: int) -> None:
    async def reached() -> bool:
        return len(items) >= count

    await bench.until(reached)


async def _true(value: bool) -> bool:
    return value
