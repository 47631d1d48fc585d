"""The functions of the recorded exchanges, as they were when the recording was made."""

from __future__ import annotations

import datetime
from typing import Any

import inngest

CANCEL_EVENT = "long.cancel"


def wire_functions(client: inngest.Inngest) -> list[inngest.Function[Any]]:
    """The seven functions of the app `wire`."""

    @client.create_function(fn_id="child", trigger=inngest.TriggerEvent(event="child.asked"))
    async def child(ctx: inngest.Context) -> dict[str, Any]:
        return {"got": ctx.event.data}

    @client.create_function(fn_id="steps", retries=2, trigger=inngest.TriggerEvent(event="steps"))
    async def steps(ctx: inngest.Context) -> dict[str, Any]:
        async def one() -> dict[str, int]:
            return {"n": 1}

        async def flaky() -> str:
            if ctx.attempt == 0:
                raise inngest.RetryAfterError("later", 1000)
            return "ok"

        await ctx.step.run("a", one)
        await ctx.step.run("a", one)
        await ctx.step.run("flaky", flaky)
        await ctx.step.sleep("nap", 1000)
        await ctx.step.send_event("emit", inngest.Event(name="child.asked", data={"z": 1}))
        await ctx.group.parallel((lambda: ctx.step.run("p1", one), lambda: ctx.step.run("p2", one)))
        answer = await ctx.step.invoke("call", function=child, data={"q": 2})
        return {"done": True, "child": answer}

    @client.create_function(fn_id="waits", trigger=inngest.TriggerEvent(event="waits"))
    async def waits(ctx: inngest.Context) -> dict[str, Any]:
        hit = await ctx.step.wait_for_event(
            "hit", event="answer", if_exp="event.data.k == async.data.k", timeout=datetime.timedelta(seconds=20)
        )
        miss = await ctx.step.wait_for_event("miss", event="never", timeout=datetime.timedelta(seconds=2))
        return {"m": hit and hit.data, "t": miss and miss.data}

    async def on_failure(ctx: inngest.Context) -> dict[str, Any]:
        return {"name": ctx.event.name}

    @client.create_function(
        fn_id="fails", retries=1, on_failure=on_failure, trigger=inngest.TriggerEvent(event="fails")
    )
    async def fails(ctx: inngest.Context) -> None:
        async def boom() -> None:
            raise ValueError("boom")

        await ctx.step.run("boom", boom)

    @client.create_function(fn_id="never", retries=3, trigger=inngest.TriggerEvent(event="never.retry"))
    async def never(ctx: inngest.Context) -> None:
        raise inngest.NonRetriableError("no")

    @client.create_function(fn_id="cron", trigger=inngest.TriggerCron(cron="* * * * *"))
    async def cron(ctx: inngest.Context) -> dict[str, Any]:
        return {"ev": ctx.event.name}

    @client.create_function(
        fn_id="cancelled",
        cancel=[inngest.Cancel(event=CANCEL_EVENT)],
        trigger=inngest.TriggerEvent(event="long"),
    )
    async def cancelled(ctx: inngest.Context) -> None:
        await ctx.step.sleep("z", 6000)

    return [child, steps, waits, fails, never, cron, cancelled]
