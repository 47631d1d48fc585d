"""The one way a tool runs. Agents, workflow steps and later bridges all come through this port."""

from typing import Protocol

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.results import ToolResult
from agentic.services.tools.calls import ToolCall, ToolInvocation


class ToolInvoker(Protocol):
    """Decides one call, runs it at most once, bounds what comes back."""

    async def invoke(self, call: ToolCall, inv: ToolInvocation) -> ToolResult:
        """Run one call.

        Returns:
            The answer, a refusal under its stable code, or the stored answer of an earlier identical call.

        Raises:
            ApprovalRequired: a person must decide first; nothing was claimed.
            ClaimInFlight: another worker holds the call, or its outcome is awaited until the error's ``due_at``.
            LeaseLost: the run belongs to another worker.
            ClaimLost: the call belongs to another worker.
            Exception: whatever a read's handler raised, or an effect's handler raised before it could have had its effect.
        """
        ...

    async def must_ask(self, call: ToolCall, inv: ToolInvocation) -> ApprovalRequest | None:
        """Whether this call, decided now, would need a person: the question to file, or ``None``. Runs nothing (ADR 0011)."""
        ...
