"""How runs end before their time: given up, cancelled by an event, cancelled by their id; and who is told."""

from __future__ import annotations

import datetime

import httpx
import inngest
from conformance_server import Server

SECOND = datetime.timedelta(seconds=1)


async def test_a_run_that_gives_up_calls_its_failure_handler_once(server: Server) -> None:
    async def on_failure(ctx: inngest.Context) -> None:
        data = ctx.event.data
        server.notes.append(["failed", data["error"]["message"], data["event"]["data"]])  # type: ignore[index,call-overload]

    @server.client.create_function(fn_id="gives-up", retries=3, on_failure=on_failure, trigger=server.on("try"))
    async def gives_up(ctx: inngest.Context) -> None:
        server.notes.append(f"attempt {ctx.attempt}")
        raise inngest.NonRetriableError("no use")

    await server.serve(gives_up)
    await server.send("try", {"order": 7})
    await server.noted("attempt 0", ["failed", "no use", {"order": 7}])


async def test_a_cancel_event_ends_only_the_run_that_it_matches(server: Server) -> None:
    async def on_failure(ctx: inngest.Context) -> None:
        server.notes.append("failed")  # a cancelled run has not failed

    @server.client.create_function(
        fn_id="long",
        on_failure=on_failure,
        cancel=[inngest.Cancel(event=server.name("stop"), if_exp="event.data.id == async.data.id")],
        trigger=server.on("go"),
    )
    async def long(ctx: inngest.Context) -> None:
        await ctx.step.run("begin", server.note, f"begin {ctx.event.data['id']}")
        await ctx.step.sleep("nap", 3 * SECOND)
        await ctx.step.run("end", server.note, f"end {ctx.event.data['id']}")

    await server.serve(long)
    for which in ("one", "two"):
        await server.send("go", {"id": which})
    await server.until(lambda: len(server.notes) == 2)
    await server.send("stop", {"id": "one"})
    await server.noted("begin one", "begin two", "end two")


async def test_a_run_is_cancelled_by_its_id(server: Server) -> None:
    @server.client.create_function(fn_id="long", trigger=server.on("go"))
    async def long(ctx: inngest.Context) -> None:
        await ctx.step.run("begin", server.note, ctx.run_id)
        await ctx.step.sleep("nap", 2 * SECOND)
        await ctx.step.run("end", server.note, "end")

    @server.client.create_function(fn_id="after", trigger=server.on("after"))
    async def after(ctx: inngest.Context) -> None:
        await ctx.step.sleep("nap", 4 * SECOND)
        await ctx.step.run("end", server.note, "after")

    await server.serve(long, after)
    await server.send("go")
    await server.until(lambda: len(server.notes) == 1)
    (run_id,) = server.notes
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.delete(f"{server.url}/v1/runs/{run_id}")
    assert answer.status_code < 300, answer.text
    await server.send("after")  # by when the cancelled run would have ended long since
    await server.noted(run_id, "after")


async def test_functions_may_listen_to_the_end_of_others(server: Server) -> None:
    @server.client.create_function(fn_id="works", trigger=server.on("go"))
    async def works(ctx: inngest.Context) -> str:
        return "done"

    mine = f"event.data.function_id == '{server.key}-works'"

    @server.client.create_function(
        fn_id="hears", trigger=inngest.TriggerEvent(event="inngest/function.finished", expression=mine)
    )
    async def hears(ctx: inngest.Context) -> None:
        server.notes.append(ctx.event.data["function_id"])

    await server.serve(works, hears)
    await server.send("go")
    await server.noted(f"{server.key}-works")
