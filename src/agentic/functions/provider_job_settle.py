"""``provider_job.settle``: writes what an ended job cost, once, off every run (M1). The row decides; the event only names it."""

from uuid import UUID

import inngest

from agentic.contract.events import EventName
from agentic.functions.ports import Settling

FUNCTION_ID = "provider_job.settle"
RETRIES = 3


def provider_job_settle(client: inngest.Inngest, settling: Settling) -> inngest.Function[dict[str, bool]]:
    """Build the function."""

    async def exhausted(ctx: inngest.Context) -> None:
        """Every attempt failed: one report; the job stays where the sweep and a person find it."""
        event = ctx.event.data["event"]
        data = event["data"] if isinstance(event, dict) else {}
        ids = data if isinstance(data, dict) else {}
        organization_id, job_id = UUID(str(ids["organization_id"])), UUID(str(ids["job_id"]))

        async def give_up() -> None:
            await settling.give_up(organization_id, job_id)

        await ctx.step.run("give-up", give_up)

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=inngest.TriggerEvent(event=EventName.PROVIDER_JOB_COMPLETED),
        retries=RETRIES,
        on_failure=exhausted,
    )
    async def settle(ctx: inngest.Context) -> dict[str, bool]:
        organization_id, job_id = UUID(str(ctx.event.data["organization_id"])), UUID(str(ctx.event.data["job_id"]))

        async def write() -> bool:
            return await settling.settle(organization_id, job_id)

        return {"settled": await ctx.step.run("settle", write)}

    return settle
