"""``mcp_servers.sweep``: looks at the MCP servers whose probe is due; one that is gone is left out of new runs, one that is back is in."""

from dataclasses import asdict

import inngest

from agentic.functions.ports import Probing

FUNCTION_ID = "mcp_servers.sweep"
EVERY_FIVE_MINUTES = "*/5 * * * *"


def mcp_servers_sweep(client: inngest.Inngest, probing: Probing) -> inngest.Function[dict[str, int]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerCron(cron=EVERY_FIVE_MINUTES),
        concurrency=[inngest.Concurrency(limit=1)],
        retries=0,
    )
    async def sweep(ctx: inngest.Context) -> dict[str, int]:
        async def probe() -> dict[str, int]:
            return {name: int(count) for name, count in asdict(await probing.probe_due()).items()}

        return await ctx.step.run("probe", probe)

    return sweep
