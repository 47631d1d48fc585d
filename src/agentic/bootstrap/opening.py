"""Opens an app: every port gets its adapter here, and nowhere else."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal

from agentic.bootstrap.app import App
from agentic.bootstrap.credentials import OrganizationCredentials
from agentic.bootstrap.platform import Platform
from agentic.contract.clock import Clock, SystemClock
from agentic.runtime.agent.advance import Advance
from agentic.runtime.agent.publication import check_publication
from agentic.runtime.agent.runs import Runs
from agentic.runtime.agent.sweeps import Sweeps
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.service import ApprovalService
from agentic.services.artifacts.keeping import ElsewhereOrInTheRow
from agentic.services.artifacts.ports import ArtifactBodies
from agentic.services.artifacts.service import Artifacts
from agentic.services.audit.service import AuditService
from agentic.services.connections.account_intake import AccountEventIntake
from agentic.services.connections.credential_reader import CredentialReader
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.service import ConnectionService
from agentic.services.connections.vault import Vault
from agentic.services.journal.service import JournalService
from agentic.services.mcp.administration import McpServers
from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.deployment import launches_from_environment
from agentic.services.mcp.hub import ServerHub
from agentic.services.mcp.permits import permits_from_environment
from agentic.services.outbox.service import EventBus, Outbox
from agentic.services.policy import PolicyEngine, PolicyService
from agentic.services.policy.packaged_facts import with_packaged
from agentic.services.provider_jobs.intake import WebhookIntake
from agentic.services.provider_jobs.reconciling import JobReconciling
from agentic.services.provider_jobs.settling import JobSettling
from agentic.services.retention.service import Retention
from agentic.services.tools.abandoned import AbandonedCalls
from agentic.services.tools.context import CallContext
from agentic.services.tools.default_invoker import DefaultToolInvoker, InvokerSettings
from agentic.services.tools.meter import Meter
from agentic.services.tools.ports import PolicyPort
from agentic.services.tools.registry import ToolRegistry, build_registry
from agentic.services.tools.scoped_db import ScopedDatabase
from agentic.services.usage.pricing import priced
from agentic.services.usage.rollup import Rollup
from agentic.storage.account_event_store import PostgresAccountEventStore
from agentic.storage.approval_store import PostgresApprovalStore
from agentic.storage.artifact_store import PostgresArtifactRows, PostgresBodies
from agentic.storage.audit_store import PostgresAuditStore
from agentic.storage.call_ledger import PostgresCallLedger
from agentic.storage.catalogue_store import PostgresCatalogueStore
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.storage.database import Database
from agentic.storage.event_store import PostgresEventStore
from agentic.storage.job_store import PostgresJobStore
from agentic.storage.journal_store import PostgresJournalStore
from agentic.storage.meter_ledger import PostgresMeterLedger
from agentic.storage.outbox_store import PostgresOutboxStore
from agentic.storage.policy_store import PostgresPolicyStore
from agentic.storage.pool import Pool, open_pool
from agentic.storage.retention_store import PostgresRetentionStore
from agentic.storage.run_mark_store import PostgresRunMarks
from agentic.storage.run_store import PostgresRunStore
from agentic.storage.scoped_db import joined_tables, scoped_db
from agentic.storage.server_store import PostgresServerStore
from agentic.storage.usage_store import PostgresUsageStore
from agentic.storage.workflow_store import PostgresWorkflowStore


@asynccontextmanager
async def open_platform(
    app: App,
    database_url: str,
    *,
    bus: EventBus,
    clock: Clock | None = None,
    timings: Timings | None = None,
    invoker_settings: InvokerSettings | None = None,
    policy: PolicyPort | None = None,
    environment: Literal["live", "frozen"] = "live",
    artifact_bodies: ArtifactBodies | None = None,
    mcp_launches: Mapping[str, StdioLaunch] | None = None,
    warm_servers: bool = True,
    max_connections: int = 8,
    stores_on: Callable[[Pool], Database] = Database,
    supabase: Mapping[str, str] = os.environ,
) -> AsyncIterator[Platform]:
    """Join an app to a migrated database until the block ends.

    Args:
        policy: what decides in place of the stored rules over the built-in matrix; for tests.
        artifact_bodies: an object store for what calls leave; ``None`` keeps the bytes in Postgres.
        mcp_launches: how each stdio server of this deployment is started, by server id; ``None`` reads the file that
            ``AGENTIC_MCP_SERVERS`` names, if it names one (docs/mcp.md). What of it cannot be used is logged, and not started.
        warm_servers: MCP servers of a run are opened while its model thinks; ``False`` leaves that to the first call.
        max_connections: connections of this process at most.
        stores_on: what the stores reach the pool through; a benchmark counts there.
        supabase: where ``SUPABASE_URL`` and its key are looked up, for tables of organizations; empty, for those of the database.

    Raises:
        RegistryError: naming every fault of every tool declaration.
        ProgramFault: a fact is declared twice, or under a reserved name; an agent's tools exceed its maximum class; the egress
            allow-list cannot be used.
        StorageUnavailable: nobody answers at the database URL.
    """
    from agentic.runtime.agent.agno.runtime import (
        AgnoLoop,  # imports the framework, half a second that the CLI need not pay
    )

    clock = clock or SystemClock()
    timings = timings or Timings()
    loop = AgnoLoop(app.models)  # type: ignore[arg-type]
    async with (
        open_pool(database_url, max_size=max_connections) as pool,
        _scoped(app, database_url, supabase) as scoped,
    ):
        database = stores_on(pool)
        run_store = PostgresRunStore(database)
        events = PostgresEventStore(database)
        retention_store = PostgresRetentionStore(database)
        workflow_store = PostgresWorkflowStore(database)

        async def words(ctx: CallContext) -> list[str]:
            return [loop.text_of(message) for message in await run_store.words(ctx.organization_id, ctx.run_id)]

        journal_store = PostgresJournalStore(database)
        facts = with_packaged(app.facts, words=words, written_to=journal_store.written_to)
        catalogue = PostgresCatalogueStore(database)
        jobs = PostgresJobStore(database)
        registry = build_registry(app.declared_tools(jobs, scoped), facts=facts.names, states=catalogue)
        _check_agents(app, registry)
        policy_store = PostgresPolicyStore(database)
        engine = PolicyEngine(store=policy_store, facts=facts)
        approval_store = PostgresApprovalStore(database)
        outbox = Outbox(store=PostgresOutboxStore(database), bus=bus)
        webhooks = WebhookIntake(store=jobs, providers=app.providers, send=outbox.send)
        approvals = ApprovalService(store=approval_store, flush=outbox.flush)
        artifacts = Artifacts(
            rows=PostgresArtifactRows(database), in_rows=PostgresBodies(database), elsewhere=artifact_bodies
        )
        vault_keys, connection_store = VaultKeys.from_environment(), PostgresConnectionStore(database)
        vault = Vault(store=connection_store, keys=vault_keys, clock=clock)
        invoker = DefaultToolInvoker(
            registry=registry,
            ledger=PostgresCallLedger(database),
            policy=policy or engine,
            clock=clock,
            settings=invoker_settings,
            meter=Meter(ledger=PostgresMeterLedger(database), pricing=priced),
            connections=app.connections or vault,
            facts=facts.find,
            artifacts=ElsewhereOrInTheRow(bodies=artifact_bodies) if artifact_bodies is not None else None,
        )
        journal = JournalService(journal_store, abandoned=AbandonedCalls(registry=registry, invoker=invoker))
        launches = launches_from_environment() if mcp_launches is None else mcp_launches
        permits, server_store = permits_from_environment(), PostgresServerStore(database, launches)
        hub = ServerHub(
            store=server_store,
            registry=registry,
            launches=launches,
            vault=partial(OrganizationCredentials, CredentialReader(store=connection_store, keys=vault_keys)),
            permits=permits,
            marks=PostgresRunMarks(database),
            warm=warm_servers,
            clock=clock,
        )
        try:
            yield Platform(
                app=app,
                registry=registry,
                database=database,
                runs=Runs(
                    store=run_store,
                    registry=registry,
                    loop=loop,
                    models=loop,
                    flush=outbox.flush,
                    may_ask=engine.may_ask,
                    arrivals=hub,
                    agents=app.agent,
                    timings=timings,
                ),
                run_store=run_store,
                events=events,
                usage=PostgresUsageStore(database),
                approvals=approvals,
                approval_store=approval_store,
                journal=journal,
                audit=AuditService(PostgresAuditStore(database)),
                artifacts=artifacts,
                connections=ConnectionService(store=connection_store, keys=vault_keys),
                policy=PolicyService(
                    store=policy_store,
                    tools=[tool.spec for tool in registry],
                    facts=facts,
                    clock=clock,
                    runnable={tool.spec.name: tool for tool in registry},
                ),
                catalogue=catalogue,
                outbox=outbox,
                invoker=invoker,
                jobs=jobs,
                webhooks=webhooks,
                account_events=AccountEventIntake(
                    store=PostgresAccountEventStore(database), providers=app.account_events, send=outbox.send
                ),
                settling=JobSettling(jobs),
                reconciling=JobReconciling(store=jobs, providers=app.providers, intake=webhooks, flush=outbox.flush),
                mcp=McpServers(store=server_store, permits=permits, launches=launches, look=hub.look),
                servers=hub,
                workflow_store=workflow_store,
                clock=clock,
                timings=timings,
                environment=environment,
                leader=Advance(
                    store=run_store,
                    invoker=invoker,
                    loop=loop,
                    clock=clock,
                    flush=outbox.flush,
                    timings=timings,
                    environment=environment,
                    words=events,
                    arrivals=hub,
                ),
                sweeper=Sweeps(
                    runs=run_store,
                    approvals=approvals,
                    journal=journal,
                    outbox=outbox,
                    artifacts=artifacts,
                    workflows=workflow_store,
                ),
                retention=Retention(retention_store, bodies=artifact_bodies, periods=app.retention),
                rollup=Rollup(retention_store),
                loop=loop,
            )
        finally:
            try:
                await hub.aclose()
            finally:
                await vault.aclose()
                await loop.aclose()


@asynccontextmanager
async def _scoped(app: App, database_url: str, supabase: Mapping[str, str]) -> AsyncIterator[ScopedDatabase | None]:
    """Opened for an app alone that has tools for it."""
    tables = joined_tables(app.scoped_tables)
    if not app.scoped_tools:
        yield None
        return
    async with scoped_db(database_url, tables=tables, environment=supabase) as scoped:
        yield scoped


def _check_agents(app: App, registry: ToolRegistry) -> None:
    specs = {tool.spec.name: tool.spec for tool in registry}
    for definition in app.agents:
        check_publication(definition, specs.get)
