"""What the body of a workflow works with: the SDK's context, and where its governed calls go."""

from dataclasses import dataclass
from typing import Any

import inngest

from agentic.runtime.workflow.flow import Flow
from agentic.runtime.workflow.leading import NodeLeader
from agentic.services.provider_jobs.ports import JobReader


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowContext:
    """One run of a workflow's function. ``step``, ``group``, ``event`` and ``run_id`` are the SDK's own."""

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
    def step(self) -> Any:
        """The SDK's steps; those that call no tool need nothing of this package."""
        return self.sdk.step

    @property
    def group(self) -> Any:
        """The SDK's groups, for nodes side by side: ``await ctx.group.parallel((lambda: tool_step(ctx, …), …))``."""
        return self.sdk.group
