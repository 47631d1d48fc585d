"""What the body of a workflow works with: the SDK's context, and where its governed calls go."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import inngest

from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.leading import NodeLeader
from agentic.services.provider_jobs.ports import JobReader

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowContext:
    """One run of a workflow's function. ``step``, ``event`` and ``run_id`` are the SDK's own."""

    sdk: inngest.Context
    flow: Flow
    leader: NodeLeader
    jobs: JobReader

    @property
    def event(self) -> inngest.Event:
        """What started the function."""
        return self.sdk.event

    @property
    def run_id(self) -> str:
        """The function server's id of this run."""
        return self.sdk.run_id

    @property
    def step(self) -> inngest.Step:
        """The SDK's steps; those that call no tool need nothing of this package."""
        return self.sdk.step

    async def side_by_side(self, *nodes: Callable[[], Awaitable[T]]) -> tuple[T, ...]:
        """Run nodes and other steps side by side; ``await ctx.side_by_side(lambda: tool_step(ctx, …), lambda: …)``.

        As the SDK's ``group.parallel``, but one that waits for a person or for its time holds up none beside it: each goes on as soon as
        it can, and the function is called for that.

        Args:
            nodes: each makes its steps one after another. What raises ends the others where they stand.

        Returns:
            Their answers, in this order, once all have one.
        """
        return await self.sdk.group.parallel(nodes, parallel_mode=inngest.ParallelMode.RACE)
