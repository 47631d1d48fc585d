"""``retention.sweep``: removes what has been kept long enough, once a day, after the day's sums."""

from dataclasses import asdict

import inngest

from agentic.functions.ports import Cleaner

FUNCTION_ID = "retention.sweep"
DAILY = "37 3 * * *"


def retention_sweep(client: inngest.Inngest, cleaner: Cleaner) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=DAILY),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=2,
    )
    async def sweep(ctx: inngest.Context) -> dict[str, int]:
        async def remove() -> dict[str, int]:
            return {name: int(count) for name, count in asdict(await cleaner.sweep()).items()}

        return await ctx.step.run("remove", remove)

    return sweep
