"""When events start runs: once for an id, one call at a time for a key, and as flow control says."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import inngest
import pytest
from conformance_server import Server

SECOND = datetime.timedelta(seconds=1)


async def test_an_event_id_starts_a_function_once_and_a_key_one_call_at_a_time(server: Server) -> None:
    inside = 0

    @server.client.create_function(
        fn_id="lane",
        concurrency=[inngest.Concurrency(limit=1, key="event.data.lane")],
        trigger=server.on("lane"),
    )
    async def lane(ctx: inngest.Context) -> None:
        nonlocal inside
        inside += 1
        await asyncio.sleep(0.05)  # stands for work; overlap is what is measured
        server.notes.append((ctx.event.id, inside))
        inside -= 1

    await server.serve(lane)
    ids = [f"{server.key}-{n}" for n in range(3)]
    for event_id in (*ids, *ids):
        await server.send("lane", {"lane": "a"}, event_id)
    await server.noted(*((event_id, 1) for event_id in ids))


async def test_a_trigger_takes_only_the_events_for_which_its_expression_holds(server: Server) -> None:
    @server.client.create_function(fn_id="picky", trigger=server.on("order", "event.data.n > 1 && event.data.paid"))
    async def picky(ctx: inngest.Context) -> None:
        server.notes.append(ctx.event.data["n"])

    await server.serve(picky)
    for n, paid in ((1, True), (2, False), (3, True)):
        await server.send("order", {"n": n, "paid": paid})
    await server.noted(3)


async def test_an_idempotency_key_starts_a_function_once(server: Server) -> None:
    @server.client.create_function(fn_id="once", idempotency="event.data.order", trigger=server.on("order"))
    async def once(ctx: inngest.Context) -> None:
        server.notes.append(ctx.event.data["order"])

    await server.serve(once)
    for order in ("a", "a", "b"):
        await server.send("order", {"order": f"{server.key}-{order}"})
    await server.noted(f"{server.key}-a", f"{server.key}-b")


async def test_a_rate_limit_drops_what_goes_beyond_it(server: Server) -> None:
    @server.client.create_function(
        fn_id="rated",
        rate_limit=inngest.RateLimit(limit=1, period=3600 * SECOND, key="event.data.org"),
        trigger=server.on("go"),
    )
    async def rated(ctx: inngest.Context) -> None:
        server.notes.append(ctx.event.data["org"])

    await server.serve(rated)
    for org in ("a", "a", "b"):
        await server.send("go", {"org": org})
    await server.noted("a", "b")


async def test_a_debounced_function_starts_with_the_last_event(server: Server) -> None:
    @server.client.create_function(
        fn_id="calm", debounce=inngest.Debounce(period=SECOND, key="event.data.org"), trigger=server.on("go")
    )
    async def calm(ctx: inngest.Context) -> None:
        server.notes.append((ctx.event.data["org"], ctx.event.data["n"]))

    await server.serve(calm)
    for n, org in enumerate("aab"):
        await server.send("go", {"org": org, "n": n})
    await server.noted(("a", 1), ("b", 2))


async def test_a_batch_starts_full_or_when_its_time_is_over(server: Server) -> None:
    @server.client.create_function(
        fn_id="batch", batch_events=inngest.Batch(max_size=2, timeout=2 * SECOND), trigger=server.on("go")
    )
    async def batch(ctx: inngest.Context) -> None:
        server.notes.append(sorted(str(event.data["n"]) for event in ctx.events))

    await server.serve(batch)
    for n in range(3):
        await server.send("go", {"n": n})
    await server.noted(["0", "1"], ["2"])


@pytest.mark.parametrize(("mode", "last"), [("skip", 0), ("cancel", 1)])
async def test_a_singleton_keeps_the_first_run_or_the_last(server: Server, mode: Any, last: int) -> None:
    @server.client.create_function(
        fn_id="single", singleton=inngest.Singleton(mode=mode, key="event.data.org"), trigger=server.on("go")
    )
    async def single(ctx: inngest.Context) -> None:
        await ctx.step.run("begin", server.note, f"begin {ctx.event.data['n']}")
        await ctx.step.sleep("nap", 2 * SECOND)
        await ctx.step.run("end", server.note, f"end {ctx.event.data['n']}")

    await server.serve(single)
    await server.send("go", {"org": "a", "n": 0})
    await server.until(lambda: "begin 0" in server.notes)
    await server.send("go", {"org": "a", "n": 1})
    await server.noted("begin 0", *(["begin 1"] if mode == "cancel" else []), f"end {last}")
