"""``provider_jobs.sweep``: asks silent providers, hands unknown jobs to an operator, asks again for unsettled costs (W1, M1)."""

import inngest

from agentic.functions.ports import Reconciling

FUNCTION_ID = "provider_jobs.sweep"
EVERY_MINUTE = "* * * * *"


def provider_jobs_sweep(client: inngest.Inngest, reconciling: Reconciling) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=EVERY_MINUTE),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=0,
    )
    async def sweep(ctx: inngest.Context) -> dict[str, int]:
        return {"moved": await ctx.step.run("sweep", reconciling.sweep)}

    return sweep
