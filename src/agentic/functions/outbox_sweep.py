"""``outbox.sweep``: sends again what was committed but not sent (W1)."""

import inngest

from agentic.functions.ports import FunctionPorts

FUNCTION_ID = "outbox.sweep"
EVERY_MINUTE = "* * * * *"
"""Cron's smallest step. Each run of the function sweeps twice, thirty seconds apart."""


def outbox_sweep(client: inngest.Inngest, ports: FunctionPorts) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=EVERY_MINUTE),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=0,
    )
    async def sweep(ctx: inngest.Context) -> dict[str, int]:
        first = await ctx.step.run("sweep", ports.sweeper.outbox)
        await ctx.step.sleep("half-a-minute", 30_000)
        second = await ctx.step.run("sweep-again", ports.sweeper.outbox)
        return {"sent": first + second}

    return sweep
