"""Governed tool calls as durable steps of anybody's Inngest function (docs/workflows.md)."""

from agentic.runtime.workflow.context import WorkflowContext
from agentic.runtime.workflow.declaration import Workflow
from agentic.runtime.workflow.errors import NodeFailed, WorkflowPartial
from agentic.runtime.workflow.jobs import JobSeen, wait_for_job
from agentic.runtime.workflow.nodes import tool_step, wait_for_approval
from agentic.runtime.workflow.running import Workflows

__all__ = [
    "JobSeen",
    "NodeFailed",
    "Workflow",
    "WorkflowContext",
    "WorkflowPartial",
    "Workflows",
    "tool_step",
    "wait_for_approval",
    "wait_for_job",
]
