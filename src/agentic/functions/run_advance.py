"""``run.advance``: one function, several triggers, one segment a function run (ADR 0002).

The concurrency key is capacity, not correctness: the lease on the run's row is the only mutex. When the run comes back at a time, the
function sleeps until then durably and nudges; the sweep backs it up.
"""

import logging
from datetime import UTC, datetime
from uuid import UUID

import inngest

from agentic.contract.events import EventName
from agentic.functions.ports import FunctionPorts

_log = logging.getLogger(__name__)
FUNCTION_ID = "run.advance"
FIRST = "event.data.lane == 'interactive' ? 120 : 0"
"""A run that a person waits for goes before batch work that came up to so many seconds earlier."""


def run_advance(client: inngest.Inngest, ports: FunctionPorts) -> inngest.Function[dict[str, str | None]]:
    """Build the function."""

    @client.create_function(
        fn_id=FUNCTION_ID,
        trigger=[
            inngest.TriggerEvent(event=EventName.RUN_REQUESTED),
            inngest.TriggerEvent(event=EventName.RUN_DECIDED),
            inngest.TriggerEvent(event=EventName.RUN_NUDGED),
        ],
        priority=inngest.Priority(run=FIRST),
        concurrency=[inngest.Concurrency(limit=ports.runs_at_once, key="event.data.organization_id + event.data.lane")],
        retries=4,
    )
    async def advance(ctx: inngest.Context) -> dict[str, str | None]:
        organization_id, run_id = str(ctx.event.data["organization_id"]), str(ctx.event.data["run_id"])

        async def lead() -> dict[str, str | None]:
            try:
                advanced = await ports.leader.advance(UUID(organization_id), UUID(run_id))
            except Exception as fault:
                _log.warning("run %s was not advanced (%s); the function tries again", run_id, type(fault).__name__)
                raise
            return {"state": advanced.state, "due_at": advanced.due_at.isoformat() if advanced.due_at else None}

        led = await ctx.step.run("advance", lead)
        due_at = led["due_at"]
        if due_at is not None:
            await ctx.step.sleep_until("until-due", max(datetime.fromisoformat(due_at), datetime.now(UTC)))
            await ctx.step.send_event(
                "nudge",
                inngest.Event(name=EventName.RUN_NUDGED, id=f"{ctx.run_id}:due", data={**ctx.event.data}),
            )
        return {"run_id": run_id, "state": led["state"]}

    return advance
