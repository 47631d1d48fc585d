"""Waiting inside a function, in slices that grow, with a look at the row before each (W1, W2).

An event that arrives before its wait is registered, or not at all, costs one slice; the row answers. While a function waits no worker,
connection or lease is held (W3).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from agentic.runtime.workflow.context import WorkflowContext
from agentic.runtime.workflow.slices import Look, slice_s


async def wait(
    ctx: WorkflowContext,
    wait_id: str,
    look: Callable[[Look | None], Awaitable[Look]],
    *,
    event: str,
    matches: str,
) -> Look:
    """Wait until a look finds that there is nothing to wait for.

    Args:
        wait_id: ids of the steps begin with it.
        look: reads the row, told what the first look found; runs as a durable step.
        event: name of the event that may shorten the wait.
        matches: which of these events; an expression over ids, for values with quotes match nothing.
    """
    first: Look | None = None

    async def looked() -> dict[str, Any]:
        return (await look(first)).model_dump(mode="json")

    number = 0
    while True:
        found = Look.model_validate(await ctx.step.run(f"{wait_id}/look-{number}", looked))
        first = first or found
        if found.over:
            return found
        timeout_ms = slice_s(number, found.within_s) * 1000
        await ctx.step.wait_for_event(f"{wait_id}/wait-{number}", event=event, if_exp=matches, timeout=timeout_ms)
        number += 1
