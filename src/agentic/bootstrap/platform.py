"""An app joined to a database, as one value."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agentic.bootstrap.app import App
from agentic.contract.clock import Clock
from agentic.runtime.agent.advance import Advance
from agentic.runtime.agent.runs import Runs
from agentic.runtime.agent.sweeps import Sweeps
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.service import ApprovalService
from agentic.services.artifacts.service import Artifacts
from agentic.services.audit.service import AuditService
from agentic.services.connections.account_intake import AccountEventIntake
from agentic.services.connections.service import ConnectionService
from agentic.services.journal.service import JournalService
from agentic.services.mcp.administration import McpServers
from agentic.services.mcp.hub import ServerHub
from agentic.services.outbox.service import Outbox
from agentic.services.policy import PolicyService
from agentic.services.provider_jobs.intake import WebhookIntake
from agentic.services.provider_jobs.reconciling import JobReconciling
from agentic.services.provider_jobs.settling import JobSettling
from agentic.services.retention.service import Retention
from agentic.services.tools.default_invoker import DefaultToolInvoker
from agentic.services.tools.registry import ToolRegistry
from agentic.services.usage.rollup import Rollup
from agentic.storage.approval_store import PostgresApprovalStore
from agentic.storage.catalogue_store import PostgresCatalogueStore
from agentic.storage.database import Database
from agentic.storage.event_store import PostgresEventStore
from agentic.storage.job_store import PostgresJobStore
from agentic.storage.run_store import PostgresRunStore
from agentic.storage.usage_store import PostgresUsageStore
from agentic.storage.workflow_store import PostgresWorkflowStore

if TYPE_CHECKING:
    from agentic.runtime.agent.agno.runtime import AgnoLoop


@dataclass(frozen=True, kw_only=True)
class Platform:
    """An app joined to a database: everything that starts, leads, decides and sweeps."""

    app: App
    registry: ToolRegistry
    database: Database
    runs: Runs
    run_store: PostgresRunStore
    events: PostgresEventStore
    usage: PostgresUsageStore
    approvals: ApprovalService
    approval_store: PostgresApprovalStore
    journal: JournalService
    audit: AuditService
    artifacts: Artifacts
    connections: ConnectionService
    policy: PolicyService
    catalogue: PostgresCatalogueStore
    outbox: Outbox
    invoker: DefaultToolInvoker
    jobs: PostgresJobStore
    webhooks: WebhookIntake
    account_events: AccountEventIntake
    settling: JobSettling
    reconciling: JobReconciling
    mcp: McpServers
    servers: ServerHub
    workflow_store: PostgresWorkflowStore
    clock: Clock
    timings: Timings
    environment: Literal["live", "frozen"]
    leader: Advance
    sweeper: Sweeps
    retention: Retention
    rollup: Rollup
    loop: "AgnoLoop"
