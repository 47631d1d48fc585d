"""Waits for events: only what matches ends them, only while they stand, and time-outs give nothing."""

from __future__ import annotations

import asyncio
import datetime
import uuid

import inngest
from conformance_server import SETTLES_S, Server

SECOND = datetime.timedelta(seconds=1)


async def test_waits_end_with_the_matching_event_or_with_none(server: Server) -> None:
    @server.client.create_function(fn_id="waits", trigger=server.on("asked"))
    async def waits(ctx: inngest.Context) -> None:
        hit = await ctx.step.wait_for_event(
            "hit", event=server.name("answered"), if_exp="event.data.id == async.data.id", timeout=20 * SECOND
        )
        miss = await ctx.step.wait_for_event("miss", event=server.name("never"), timeout=SECOND)
        await ctx.step.run("note", server.note, [hit and hit.data["id"], miss])

    await server.serve(waits)
    mine, other = str(uuid.uuid4()), str(uuid.uuid4())
    await server.send("asked", {"id": mine})
    async with asyncio.timeout(SETTLES_S):
        while not server.notes:  # an answer before the wait is registered is lost, so it is sent until it is heard
            await server.send("answered", {"id": other})
            await server.send("answered", {"id": mine})
            await asyncio.sleep(0.2)
    await server.noted([mine, None])


async def test_an_event_that_came_before_the_wait_does_not_end_it(server: Server) -> None:
    @server.client.create_function(fn_id="waits", trigger=server.on("asked"))
    async def waits(ctx: inngest.Context) -> None:
        async def answer() -> None:
            await server.send("answered")  # its answer came back before this step ends, and the wait comes after it

        await ctx.step.run("answer", answer)
        await ctx.step.sleep("until it was dealt with", SECOND)
        late = await ctx.step.wait_for_event("late", event=server.name("answered"), timeout=SECOND)
        await ctx.step.run("note", server.note, late)

    await server.serve(waits)
    await server.send("asked")
    await server.noted(None)


async def test_one_event_ends_all_waits_that_it_matches(server: Server) -> None:
    @server.client.create_function(fn_id="waits", trigger=server.on("asked"))
    async def waits(ctx: inngest.Context) -> None:
        both = await ctx.group.parallel(
            tuple(
                lambda step=step: ctx.step.wait_for_event(  # type: ignore[misc]
                    step, event=server.name("answered"), if_exp="async.data.ok == true", timeout=20 * SECOND
                )
                for step in ("one", "two")
            )
        )
        await ctx.step.run("note", server.note, [event and event.data["n"] for event in both])

    await server.serve(waits)
    await server.send("asked")
    async with asyncio.timeout(SETTLES_S):
        while not server.notes:
            await server.send("answered", {"ok": False, "n": 1})
            await server.send("answered", {"ok": True, "n": 2})
            await asyncio.sleep(0.2)
    await server.noted([2, 2])
