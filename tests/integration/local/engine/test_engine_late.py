"""What comes twice or too late changes nothing: answers of a call that another engine took over, events, registrations."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import inngest
import pytest
from engine_bench import Bench

from agentic.local.engine.answers import Answer, Raised, Reported, Returned, Step
from agentic.local.engine.calls import Call
from agentic.local.engine.schedule import tick
from agentic.local.engine.settle import RetryPolicy, settle
from agentic.local.engine.store import Store

HOUR = datetime.timedelta(hours=1)
LEASE_S = 5.0
_RETRIES = RetryPolicy(backoff=lambda failures: 0.0, reconnect=lambda tries: 0.0, unreachable_s=600.0)


class Engines:
    """Two engines on one database, moved by hand: each leases and settles when the test says so."""

    def __init__(self, bench: Bench, store: Store) -> None:
        self.bench, self.store = bench, store

    async def lease(self, engine: str) -> Call:
        async with self.store.transaction() as transaction:
            found = await tick(transaction, engine=engine, room=1, lease_s=LEASE_S)
        (call,) = found.calls
        return call

    async def settle(self, engine: str, call: Call, answer: Answer) -> None:
        async with self.store.transaction() as transaction:
            await settle(transaction, call, answer, engine=engine, retries=_RETRIES)


@pytest.fixture
async def engines(bench: Bench) -> AsyncIterator[Engines]:
    """Engines `slow` and `other` with one run of function `told`, whose first call is owed; the bench's own is stopped."""

    @bench.client.create_function(fn_id="told", retries=1, trigger=inngest.TriggerEvent(event="told"))
    async def told(ctx: inngest.Context) -> None: ...

    await bench.serve(told)
    await bench.engine.stop()
    bench.engine = bench.build_engine(max_calls=0)  # takes events and registrations in, and calls nobody
    await bench.engine.start()
    bench.client = bench.new_client()
    await bench.send("told")
    store = Store(dsn=bench.dsn, clock=bench.clock)
    await store.open()
    yield Engines(bench, store)
    await store.close()


def _ran(data: Any) -> Reported:
    step = Step(id="a", op="StepRun", name="a", label="a", opts={}, data=data, error=None)
    return Reported(steps=(step,), retriable=True, version=None)


_TOO_LATE = [
    _ran("slow"),
    Returned(value="slow", version=None),
    Raised(error={"name": "E", "message": "slow"}, retriable=True, retry_at=None, version=None),
    Raised(error={"name": "E", "message": "slow"}, retriable=False, retry_at=None, version=None),
]


@pytest.mark.guarantee("W2")
@pytest.mark.parametrize("late", _TOO_LATE, ids=["step", "end", "failure", "final failure"])
@pytest.mark.parametrize("before", [True, False], ids=["before the other's", "after the other's"])
async def test_the_answer_of_a_call_that_another_engine_took_over_is_not_heard(
    engines: Engines, late: Answer, before: bool
) -> None:
    first = await engines.lease("slow")
    engines.bench.clock.jump(LEASE_S + 1)
    second = await engines.lease("other")
    assert second.job_id == first.job_id
    assert second.attempt == 0
    for engine, call, answer in sorted(
        (("slow", first, late), ("other", second, _ran("other"))), key=lambda each: (each[0] == "slow") != before
    ):
        await engines.settle(engine, call, answer)
    (run,) = await engines.bench.engine.runs("shop-told")
    assert (run.status, [step.memo for step in run.steps], run.calls) == ("running", [{"data": "other"}], 1)
    then = await engines.lease("other")
    assert (then.attempt, then.memos) == (0, {"a": {"data": "other"}})


async def test_an_answer_is_heard_once(engines: Engines) -> None:
    call = await engines.lease("slow")
    for _ in range(2):
        await engines.settle("slow", call, Returned(value="done", version=None))
    (run,) = await engines.bench.engine.runs("shop-told")
    assert (run.status, run.result, run.calls) == ("completed", "done", 0)


@pytest.mark.guarantee("W2")
async def test_an_answer_to_a_wait_that_comes_twice_or_after_its_time_changes_nothing(bench: Bench) -> None:
    @bench.client.create_function(fn_id="waits", trigger=inngest.TriggerEvent(event="waits"))
    async def waits(ctx: inngest.Context) -> list[Any]:
        found = []
        for step in ("one", "two"):
            event = await ctx.step.wait_for_event(step, event="answer", timeout=HOUR)
            found.append(event and event.data["n"])
        await ctx.step.sleep("rest", 50 * HOUR)
        return found

    await bench.serve(waits)
    await bench.send("waits")
    await bench.waiting("shop-waits", "one")
    await bench.send("answer", {"n": 1}, event_id="same")
    await bench.waiting("shop-waits", "two")
    bench.jump(3601)
    await bench.waiting("shop-waits", "rest")
    await bench.send("answer", {"n": 1}, event_id="same")
    bench.jump(25 * 3600)
    await bench.send("answer", {"n": 2})
    bench.jump(26 * 3600)
    assert (await bench.run_of("shop-waits")).result == [1, None]
