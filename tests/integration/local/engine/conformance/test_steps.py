"""Steps: each runs once in effect, groups come together, invocations answer, failures can be caught."""

from __future__ import annotations

import datetime
from typing import Any

import inngest
from conformance_server import Server

SECOND = datetime.timedelta(seconds=1)


async def test_steps_run_once_each_through_retries_sleeps_groups_and_invocations(server: Server) -> None:
    @server.client.create_function(fn_id="child", trigger=server.on("child"))
    async def child(ctx: inngest.Context) -> object:
        return {"doubled": int(str(ctx.event.data["n"])) * 2}

    @server.client.create_function(fn_id="story", retries=1, trigger=server.on("story"))
    async def story(ctx: inngest.Context) -> None:
        async def shaky() -> None:
            server.notes.append(f"shaky {ctx.attempt}")
            if ctx.attempt == 0:
                raise inngest.RetryAfterError("later", SECOND)

        await ctx.step.run("first", server.note, "first")
        await ctx.step.run("first", server.note, "first again")
        await ctx.step.run("shaky", shaky)
        await ctx.step.sleep("nap", SECOND)
        left, right = await ctx.group.parallel(
            (
                lambda: ctx.step.run("left", server.note, "left"),
                lambda: ctx.step.run("right", server.note, "right"),
            )
        )
        doubled = await ctx.step.invoke("double", function=child, data={"n": 21})
        await ctx.step.run("last", server.note, f"{left} {right} {doubled}")

    await server.serve(child, story)
    await server.send("story")
    await server.noted("first", "first again", "shaky 0", "shaky 1", "left", "right", "left right {'doubled': 42}")


async def test_a_group_may_hold_every_kind_of_step_and_answers_in_its_own_order(server: Server) -> None:
    @server.client.create_function(fn_id="child", trigger=server.on("child"))
    async def child(ctx: inngest.Context) -> object:
        return "invoked"

    @server.client.create_function(fn_id="mixed", trigger=server.on("mixed"))
    async def mixed(ctx: inngest.Context) -> None:
        until = datetime.datetime.fromtimestamp(ctx.event.ts / 1000, datetime.UTC) + SECOND
        found = await ctx.group.parallel(
            (
                lambda: ctx.step.wait_for_event("wait", event=server.name("never"), timeout=SECOND),
                lambda: ctx.step.run("run", server.note, "ran"),
                lambda: ctx.step.sleep_until("nap", until),
                lambda: ctx.step.invoke("call", function=child),
            )
        )
        await ctx.step.run("found", server.note, list(found))

    await server.serve(child, mixed)
    await server.send("mixed")
    await server.noted("ran", [None, "ran", None, "invoked"])


async def test_a_step_of_a_group_that_fails_for_good_can_be_caught_beside_those_that_do_not(server: Server) -> None:
    @server.client.create_function(fn_id="group", retries=0, trigger=server.on("group"))
    async def group(ctx: inngest.Context) -> None:
        async def boom() -> object:
            server.notes.append("boom")
            raise ValueError("boom")

        async def caught() -> object:
            try:
                return await ctx.step.run("bad", boom)
            except inngest.StepError as error:
                return error.message

        found = await ctx.group.parallel((caught, lambda: ctx.step.run("good", server.note, "good")))
        await ctx.step.run("found", server.note, list(found))

    await server.serve(group)
    await server.send("group")
    await server.noted("boom", "good", ["boom", "good"])


async def test_attempts_are_counted_anew_for_each_step(server: Server) -> None:
    @server.client.create_function(fn_id="shaky", retries=1, trigger=server.on("shaky"))
    async def shaky(ctx: inngest.Context) -> None:
        async def once(name: str) -> None:
            server.notes.append(f"{name} {ctx.attempt}")
            if ctx.attempt == 0:
                raise inngest.RetryAfterError(name, SECOND)

        await ctx.step.run("one", once, "one")
        await ctx.step.run("two", once, "two")

    await server.serve(shaky)
    await server.send("shaky")
    await server.noted("one 0", "one 1", "two 0", "two 1")


async def test_an_invocation_that_fails_or_takes_too_long_is_an_error_of_its_step(server: Server) -> None:
    @server.client.create_function(fn_id="broken", retries=0, trigger=server.on("broken"))
    async def broken(ctx: inngest.Context) -> None:
        raise inngest.NonRetriableError("it broke")

    @server.client.create_function(fn_id="slow", trigger=server.on("slow"))
    async def slow(ctx: inngest.Context) -> None:
        await ctx.step.sleep("nap", 3600 * SECOND)

    @server.client.create_function(fn_id="caller", trigger=server.on("caller"))
    async def caller(ctx: inngest.Context) -> None:
        said = []
        for step, target, timeout in (("breaks", broken, None), ("lasts", slow, SECOND)):
            try:
                await ctx.step.invoke(step, function=target, timeout=timeout)
            except inngest.StepError as error:
                said.append(error.message if step == "breaks" else error.name)
        await ctx.step.run("said", server.note, said)

    await server.serve(broken, slow, caller)
    await server.send("caller")
    await server.noted(["it broke", "InngestInvokeTimeoutError"])


async def test_an_event_sent_by_a_step_starts_its_function_once(server: Server) -> None:
    @server.client.create_function(fn_id="told", trigger=server.on("told"))
    async def told(ctx: inngest.Context) -> None:
        server.notes.append(["told", ctx.event.data["n"]])

    @server.client.create_function(fn_id="tells", trigger=server.on("tells"))
    async def tells(ctx: inngest.Context) -> None:
        events = [inngest.Event(name=server.name("told"), data={"n": n}) for n in range(2)]
        ids = await ctx.step.send_event("tell", events)
        await ctx.step.run("count", server.note, len(ids))

    await server.serve(told, tells)
    await server.send("tells")
    await server.noted(["told", 0], ["told", 1], 2)


async def test_a_step_gets_back_what_it_gave_whatever_that_is(server: Server) -> None:
    values: list[Any] = [None, 0, "", [], {}, {"data": 1}, {"error": {"message": "no"}}, "\u00e9\u4e2d\U0001f600"]

    @server.client.create_function(fn_id="odd", trigger=server.on("odd"))
    async def odd(ctx: inngest.Context) -> None:
        async def give(value: Any) -> Any:
            return value

        given = [await ctx.step.run("give", give, value) for value in values]
        await ctx.step.run("given", server.note, given)

    await server.serve(odd)
    await server.send("odd")
    await server.noted(values)
