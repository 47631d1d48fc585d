"""``runs.sweep``: expires approvals, hands stale claims to an operator, nudges runs that a lost event left (W1, J5)."""

import inngest

from agentic.functions.ports import FunctionPorts

FUNCTION_ID = "runs.sweep"
EVERY_MINUTE = "* * * * *"


def runs_sweep(client: inngest.Inngest, ports: FunctionPorts) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=EVERY_MINUTE),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=0,
    )
    async def sweep(ctx: inngest.Context) -> dict[str, int]:
        return {"moved": await ctx.step.run("sweep", ports.sweeper.runs)}

    return sweep
