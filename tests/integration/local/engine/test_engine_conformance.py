"""Scenarios that hold for the embedded engine and for a real Inngest server alike.

`INNGEST_CONFORMANCE_URL` names a server in development mode on this machine; the embedded engine is always run too.
Nothing is observed but what functions are given, so both are held to the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import inngest
import inngest.fast_api
import pytest
from engine_bench import Bench
from fastapi import FastAPI

from agentic.local.engine.server import bind, serving

SETTLES_S = 30.0
SECOND = datetime.timedelta(seconds=1)


class Server:
    """A server under test, and one app on it whose functions note what they do."""

    def __init__(self, *, url: str, stack: contextlib.AsyncExitStack) -> None:
        self.url, self.stack = url, stack
        self.notes: list[Any] = []
        app_id = f"conform-{uuid.uuid4().hex[:8]}"
        self.client = inngest.Inngest(app_id=app_id, is_production=False, api_base_url=url, event_api_base_url=url)
        stack.push_async_callback(self.client._http_client._http_client.aclose)
        self.key = app_id  # in event names, so that tests on one server do not meet

    async def serve(self, *functions: inngest.Function[Any]) -> None:
        app = FastAPI()
        inngest.fast_api.serve(app, self.client, list(functions))
        listener = bind("127.0.0.1", 0)
        await self.stack.enter_async_context(serving(app, listener))
        async with httpx.AsyncClient() as http:
            answer = await http.put(f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest")
        assert answer.json().get("ok") is True, answer.text

    async def send(self, name: str, data: dict[str, Any] | None = None, event_id: str = "") -> None:
        await self.client.send(inngest.Event(name=f"{self.key}/{name}", data=data or {}, id=event_id))

    def on(self, name: str) -> inngest.TriggerEvent:
        return inngest.TriggerEvent(event=f"{self.key}/{name}")

    async def noted(self, *notes: Any) -> None:
        async with asyncio.timeout(SETTLES_S):
            while sorted(map(str, self.notes)) != sorted(map(str, notes)):  # noqa: ASYNC110 - noted by functions
                await asyncio.sleep(0.02)


EXTERNAL = os.environ.get("INNGEST_CONFORMANCE_URL")


@pytest.fixture(params=["embedded", EXTERNAL] if EXTERNAL else ["embedded"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with contextlib.AsyncExitStack() as stack:
        url: str = request.param
        if url == "embedded":
            bench = Bench(dsn=request.getfixturevalue("empty_database"), stack=stack)
            await bench.engine.start()
            stack.push_async_callback(bench.engine.stop, grace_s=0)
            url = bench.engine.url
        yield Server(url=url, stack=stack)


async def test_steps_run_once_each_through_retries_sleeps_groups_and_invocations(server: Server) -> None:
    @server.client.create_function(fn_id="child", trigger=server.on("child"))
    async def child(ctx: inngest.Context) -> Any:
        return {"doubled": int(str(ctx.event.data["n"])) * 2}

    @server.client.create_function(fn_id="story", retries=1, trigger=server.on("story"))
    async def story(ctx: inngest.Context) -> None:
        async def note(what: str) -> str:
            server.notes.append(what)
            return what

        async def shaky() -> None:
            server.notes.append(f"shaky {ctx.attempt}")
            if ctx.attempt == 0:
                raise inngest.RetryAfterError("later", SECOND)

        await ctx.step.run("first", note, "first")
        await ctx.step.run("first", note, "first again")
        await ctx.step.run("shaky", shaky)
        await ctx.step.sleep("nap", SECOND)
        left, right = await ctx.group.parallel(
            (lambda: ctx.step.run("left", note, "left"), lambda: ctx.step.run("right", note, "right"))
        )
        doubled = await ctx.step.invoke("double", function=child, data={"n": 21})
        await ctx.step.run("last", note, f"{left} {right} {doubled}")

    await server.serve(child, story)
    await server.send("story")
    await server.noted("first", "first again", "shaky 0", "shaky 1", "left", "right", "left right {'doubled': 42}")


async def test_waits_end_with_the_matching_event_or_with_none(server: Server) -> None:
    @server.client.create_function(fn_id="waits", trigger=server.on("asked"))
    async def waits(ctx: inngest.Context) -> None:
        async def note(what: Any) -> None:
            server.notes.append(what)

        hit = await ctx.step.wait_for_event(
            "hit",
            event=f"{server.key}/answered",
            if_exp="event.data.id == async.data.id",
            timeout=datetime.timedelta(seconds=20),
        )
        miss = await ctx.step.wait_for_event("miss", event=f"{server.key}/never", timeout=SECOND)
        await ctx.step.run("note", note, [hit and hit.data["id"], miss])

    await server.serve(waits)
    mine, other = str(uuid.uuid4()), str(uuid.uuid4())
    await server.send("asked", {"id": mine})
    async with asyncio.timeout(SETTLES_S):
        while not server.notes:  # an answer before the wait is registered is lost, so it is sent until it is heard
            await server.send("answered", {"id": other})
            await server.send("answered", {"id": mine})
            await asyncio.sleep(0.2)
    await server.noted([mine, None])


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


async def test_a_run_that_gives_up_calls_its_failure_handler_once(server: Server) -> None:
    async def on_failure(ctx: inngest.Context) -> None:
        server.notes.append(["failed", ctx.event.data["error"]["message"]])  # type: ignore[index,call-overload]

    @server.client.create_function(fn_id="gives-up", retries=3, on_failure=on_failure, trigger=server.on("try"))
    async def gives_up(ctx: inngest.Context) -> None:
        server.notes.append(f"attempt {ctx.attempt}")
        raise inngest.NonRetriableError("no use")

    await server.serve(gives_up)
    await server.send("try")
    await server.noted("attempt 0", ["failed", "no use"])
