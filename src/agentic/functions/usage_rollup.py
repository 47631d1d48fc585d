"""``usage.rollup``: sums the usage of the last days, once a day."""

import inngest

from agentic.functions.ports import Summing

FUNCTION_ID = "usage.rollup"
DAILY = "7 3 * * *"


def usage_rollup(client: inngest.Inngest, summing: Summing) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=DAILY),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=2,
    )
    async def sum_up(ctx: inngest.Context) -> dict[str, int]:
        return {"sums": await ctx.step.run("compute", summing.compute)}

    return sum_up
