"""The real parts of a deployment around a scripted model, in one process, with the database as the truth.

Nothing is stood in for but the model and the events' way to Inngest: ``settle`` does what the nudges would have caused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from agentic.bootstrap import App, Platform, open_platform
from agentic.contract.clock import Clock
from agentic.contract.events import Event
from agentic.contract.principal import Principal, Role, RunCeilings
from agentic.contract.trust import Trust
from agentic.local.postgres import temporary_postgres
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Fail, Turn, Usage
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.models import Approval, Verdict
from agentic.services.artifacts.ports import ArtifactBodies
from agentic.services.connections.account_events import AccountEvents
from agentic.services.connections.fixed import FixedConnections
from agentic.services.journal.models import UncertainCall
from agentic.services.mcp.config import ServerConfig, StdioLaunch
from agentic.services.mcp.records import StoredServer
from agentic.services.policy import Fact
from agentic.services.provider_jobs.ports import JobProvider
from agentic.services.runs.models import RunMessage, RunTree
from agentic.services.tools.connections import ConnectionPort
from agentic.services.tools.declarations import Tool
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.services.tools.models import MAX_OUTPUT_BYTES
from agentic.services.tools.ports import PolicyPort
from agentic.services.tools.scoped_db import ScopedDatabase
from agentic.services.tools.scoped_tables import Tables
from agentic.storage.migrations import migrate
from agentic.testing.scripted_model import scripted

MODEL = "scripted"
_MAX_ROUNDS = 100
SHORT = Timings(lease_s=2, renew_s=0.5, model_retry_s=0.05, fault_retry_s=0.05)
"""Durations for tests that wait for a lease to run out."""


class RecordingBus:
    """An event bus that keeps what it was given; ``broken`` makes it refuse."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.broken = False

    async def send(self, events: Sequence[Event]) -> None:
        """Keep the events, or refuse them when broken."""
        if self.broken:
            raise ConnectionError("the bus is broken on purpose")
        self.events.extend(events)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """Where a run stands when nothing moves by itself any more."""

    state: str
    answer: str | None
    partial_reason: str | None
    error_code: str | None
    pending: Sequence[Approval]
    """Questions a person must answer for the run to go on."""


@dataclass(kw_only=True)
class Harness:
    """A deployment for tests.

    Attributes:
        platform: the joined objects, for whatever the shortcuts below do not cover.
        organization_id: the tenant the shortcuts act in.
        user_id: a person of the role admin there; starts runs and decides.
    """

    platform: Platform
    database_url: str
    bus: RecordingBus
    agent: AgentDefinition
    launches: dict[str, StdioLaunch]
    organization_id: UUID = field(default_factory=uuid4)
    user_id: UUID = field(default_factory=uuid4)

    async def add_server(self, config: ServerConfig, *, organization_id: UUID | None = None) -> StoredServer:
        """Add an MCP server, look at it and approve all that it offers, as an admin of the deployment would.

        Args:
            config: a stdio server's command is put where the deployment's file of servers would have it. ``credential_ref`` is the id
                of a connection.
            organization_id: whose it is; ``None`` for the harness's own.

        Raises:
            ServerRefused: it may not be configured so.
            RemoteFailure: it cannot be used.
        """
        mine = organization_id or self.organization_id
        raw = config.model_dump(mode="json")
        if isinstance(config.endpoint, StdioLaunch):
            self.launches[config.server_id] = config.endpoint
            raw["endpoint"] = {"type": "stdio"}
        await self.platform.mcp.add(mine, raw, user_id=None)
        seen = await self.platform.mcp.verify(mine, config.server_id)
        assert seen.server.offered_hash is not None
        return await self.platform.mcp.activate(
            mine, config.server_id, offered_hash=seen.server.offered_hash, user_id=None
        )

    async def start(
        self, text: str = "Go.", *, agent: AgentDefinition | None = None, request_key: str | None = None
    ) -> UUID:
        """Start a run; nothing of it has run when this returns."""
        started = await self.platform.runs.start(
            agent or self.agent,
            text,
            principal=Principal(organization_id=self.organization_id, user_id=self.user_id),
            request_key=request_key or str(uuid4()),
        )
        return started.run_id

    async def advance(self, run_id: UUID) -> str:
        """Lead the run for one segment; what became of it."""
        return (await self.platform.leader.advance(self.organization_id, run_id)).state

    async def settle(self, run_id: UUID, *, timeout_s: float = 30) -> Settled:
        """Lead the run until it ends or waits for a person, sleeping to its due time as the durable function does.

        Raises:
            TimeoutError: it still moves after ``timeout_s`` seconds.
        """
        async with asyncio.timeout(timeout_s):
            for _ in range(_MAX_ROUNDS):
                advanced = await self.platform.leader.advance(self.organization_id, run_id)
                tree = await self.tree(run_id)
                if tree.run["state"] in ("succeeded", "failed", "cancelled"):
                    return await self._settled(tree)
                if tree.run["state"] == "parked" and advanced.state in ("idle", "parked"):
                    return await self._settled(tree)
                await self._until(advanced.due_at)
        raise TimeoutError(f"run {run_id} still moves after {_MAX_ROUNDS} segments")

    async def decide(
        self, run_id: UUID, verdict: Literal["approved", "rejected"] = "approved", *, comment: str | None = None
    ) -> list[Approval]:
        """Answer every open question of the run."""
        pending = await self.platform.approvals.find(self.organization_id, run_id=run_id, status="pending")
        return [
            await self.platform.approvals.decide(
                self.organization_id, approval.id, user_id=self.user_id, verdict=Verdict(verdict), comment=comment
            )
            for approval in reversed(pending)
        ]

    async def tree(self, run_id: UUID) -> RunTree:
        """Everything the run can say about itself."""
        return await self.platform.runs.tree(self.organization_id, run_id)

    async def calls(self, run_id: UUID, tool: str | None = None) -> list[Mapping[str, Any]]:
        """The tool spans of the run, in order; of one tool when asked."""
        tree = await self.tree(run_id)
        return [span for span in tree.spans if span["kind"] == "tool" and tool in (None, span["name"])]

    async def messages(self, run_id: UUID) -> list[tuple[str, str]]:
        """Role and text of the stored messages, in order."""
        rows = await self.platform.database.all(
            "select message_id, role, body, trust::text as trust from agent.run_messages where run_id = %(run_id)s order by seq",
            {"run_id": run_id},
        )
        stored = [
            RunMessage(id=row["message_id"], role=row["role"], body=row["body"], trust=Trust(row["trust"]))
            for row in rows
        ]
        return [(message.role, self.platform.loop.text_of(message)) for message in stored]

    async def uncertain(self, run_id: UUID | None = None) -> Sequence[UncertainCall]:
        """Calls whose outcome nobody knows."""
        return await self.platform.journal.list_uncertain(self.organization_id, run_id=run_id)

    async def _settled(self, tree: RunTree) -> Settled:
        run = tree.run
        pending = await self.platform.approvals.find(self.organization_id, run_id=run["id"], status="pending")
        return Settled(
            state=run["state"],
            answer=run["answer"],
            partial_reason=run["partial_reason"],
            error_code=run["error_code"],
            pending=pending,
        )

    async def _until(self, due_at: datetime | None) -> None:
        if due_at is None:
            await asyncio.sleep(0.02)  # led elsewhere, or released to be taken at once
            return
        row = await self.platform.database.one(
            "select greatest(0, extract(epoch from %(due)s - clock_timestamp()))::float as wait_s", {"due": due_at}
        )
        await asyncio.sleep(row["wait_s"] + 0.01 if row is not None else 0.02)


@asynccontextmanager
async def harness(
    *,
    tools: Sequence[Tool],
    script: Sequence[Turn] | Callable[[], object],
    database_url: str | None = None,
    reword: bool = False,
    failures: Mapping[int, Fail] | None = None,
    usage: Usage | None = None,
    instructions: str = "Do what the user asks.",
    ceilings: RunCeilings | None = None,
    timings: Timings = SHORT,
    claim_grace_s: float = 1.0,
    clock: Clock | None = None,
    policy: PolicyPort | None = None,
    environment: Literal["live", "frozen"] = "live",
    facts: Sequence[Fact] = (),
    providers: Sequence[JobProvider] = (),
    scoped_tools: Sequence[Callable[[ScopedDatabase], Sequence[Tool]]] = (),
    scoped_tables: Tables | None = None,
    account_events: Sequence[AccountEvents] = (),
    servers: Sequence[ServerConfig] = (),
    warm_servers: bool = False,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    artifact_bodies: ArtifactBodies | None = None,
    connections: Mapping[str, str] | ConnectionPort | Literal["vault"] | None = None,
) -> AsyncIterator[Harness]:
    """A deployment of these tools around a scripted model, on a database of its own.

    Args:
        tools: declarations under test.
        script: the model's turns, or a factory of a model object of your own.
        database_url: a migrated database; ``None`` starts a temporary embedded server and migrates it.
        reword: the model words its rewordable arguments anew and renews its call ids whenever it is asked again.
        failures: requests to the model that fail, by number from 0.
        timings: durations of leases and waits; short by default.
        claim_grace_s: how long a claim outlives its call's timeout.
        policy: what decides; ``None`` for stored rules over the built-in matrix, as in a deployment.
        facts: what rules may ask about calls.
        providers: of jobs; their tools are there beside ``tools``.
        scoped_tools: makers of tools over the tables of organizations, as in an app; they stand in this database, whatever Supabase
            project the environment names.
        scoped_tables: a product's own tables, as in an app.
        servers: MCP servers; all of their tools are approved and there beside ``tools``. They are added before the block begins, with
            ``Harness.add_server``, which adds more later.
        warm_servers: open them while the model thinks, as a deployment does; without it a script decides what they list until its first
            call.
        account_events: providers that tell of connected accounts.
        max_output_bytes: how much of an answer the model reads at most.
        artifact_bodies: an object store for what calls leave; ``None`` keeps it in Postgres.
        connections: the credential by provider key, and nothing else is connected; ``None`` connects whatever a tool names, under a
            stand-in credential; ``"vault"`` reads the database's, as a deployment does.

    Raises:
        RegistryError: naming every fault of the declarations.
    """
    async with AsyncExitStack() as stack:
        if database_url is None:
            database_url = await asyncio.to_thread(stack.enter_context, temporary_postgres())
            await migrate(database_url)
        models = {MODEL: _model(script, reword=reword, failures=failures, usage=usage)}
        app = App(
            tools=tools,
            models=models,
            facts=facts,
            providers=providers,
            scoped_tools=scoped_tools,
            scoped_tables=scoped_tables or {},
            account_events=account_events,
            connections=_accounts(connections),
        )
        bus = RecordingBus()
        launches: dict[str, StdioLaunch] = {}
        platform = await stack.enter_async_context(
            open_platform(
                app,
                database_url,
                supabase={},
                bus=bus,
                clock=clock,
                timings=timings,
                invoker_settings=InvokerSettings(claim_grace_s=claim_grace_s, max_output_bytes=max_output_bytes),
                artifact_bodies=artifact_bodies,
                policy=policy,
                environment=environment,
                mcp_launches=launches,
                warm_servers=warm_servers,
            )
        )
        agent = AgentDefinition(
            name="tested",
            instructions=instructions,
            model=MODEL,
            tools=(
                *(tool.spec.name for tool in platform.registry),
                *(f"mcp.{config.server_id}.*" for config in servers),
            ),
            ceilings=ceilings or RunCeilings(),
        )
        made = Harness(platform=platform, database_url=database_url, bus=bus, agent=agent, launches=launches)
        await platform.approval_store.put_member(made.organization_id, made.user_id, Role.ADMIN)
        for config in servers:
            await made.add_server(config)
        yield made


def _accounts(connections: Mapping[str, str] | ConnectionPort | Literal["vault"] | None) -> ConnectionPort | None:
    if connections == "vault":
        return None
    if connections is None or isinstance(connections, Mapping):
        return FixedConnections(connections)
    return connections


def _model(
    script: Sequence[Turn] | Callable[[], object],
    *,
    reword: bool,
    failures: Mapping[int, Fail] | None,
    usage: Usage | None,
) -> Callable[[], object]:
    return script if callable(script) else scripted(script, reword=reword, failures=failures, usage=usage)
