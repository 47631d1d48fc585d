"""What the routes call. ``bootstrap`` joins it; the edge itself knows no database."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from agentic.contract.principal import Role
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.runs import Runs
from agentic.services.approvals.service import ApprovalService
from agentic.services.artifacts.service import Artifacts
from agentic.services.audit.service import AuditService
from agentic.services.connections.account_intake import AccountEventIntake
from agentic.services.journal.service import JournalService
from agentic.services.mcp.administration import McpServers
from agentic.services.provider_jobs.intake import WebhookIntake
from agentic.services.runs.events import RunEventReader
from agentic.services.runs.ports import RunStore
from agentic.services.usage.ports import UsageReader


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiPorts:
    """Everything the routes need.

    Attributes:
        runs: starts, cancels and shows runs.
        run_store: lists runs.
        events: reads what happened to runs.
        usage: tells what runs used and cost.
        approvals: lists and decides approvals.
        journal: lists and settles uncertain calls.
        audit: checks the records of runs.
        artifacts: reads what calls left.
        mcp: what people do with MCP servers.
        webhooks: takes what providers report of jobs.
        account_events: takes what providers tell of connected accounts.
        agent: the definition of a name; raises ``ProgramFault`` for a name nobody declared.
        role: a person's role in an organization, ``None`` for a stranger.
        health: returns when the database answers, raises when it does not.
    """

    runs: Runs
    run_store: RunStore
    events: RunEventReader
    usage: UsageReader
    approvals: ApprovalService
    journal: JournalService
    audit: AuditService
    artifacts: Artifacts
    mcp: McpServers
    webhooks: WebhookIntake
    account_events: AccountEventIntake
    agent: Callable[[str], AgentDefinition]
    role: Callable[[UUID, UUID], Awaitable[Role | None]]
    health: Callable[[], Awaitable[None]]
