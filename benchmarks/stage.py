"""What is measured stands here: a Postgres of its own, the whole platform on it, and runs that are led and never end.

No model and no agent loop: what is measured begins where a call reaches the invoker.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from psycopg import sql
from pydantic import BaseModel

from agentic.bootstrap import App, Platform, open_platform
from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal, Role, RunCeilings
from agentic.local.postgres import bootstrap_supabase, temporary_postgres
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.outbox.service import EventBus
from agentic.services.provider_jobs.ports import JobProvider
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.storage.connection import connect
from agentic.storage.migrations import migrate
from agentic.testing import RecordingBus, Say
from benchmarks import run_app
from benchmarks.tally import CountedDatabase, Counter, Tally

WAIT_S: Final = 0.02
"""What the waiting tool waits: about the time a near service takes."""
_NAME: Final = "measured"
_MODEL: Final = "silent"
_LEASE_S: Final = 3600
_VENDOR: Final = "bench"
_PRICE: Final = Decimal("0.0001")
_BOUND: Final = Decimal("0.001")
_CEILING: Final = Decimal(1_000_000)
_SERVER: Final[Mapping[str, str]] = {
    # a commit is on the disk when it is answered, as anywhere that counts
    "fsync": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    # nothing but the measured calls writes
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "4GB",
}


class Words(BaseModel):
    """Arguments of every tool here."""

    text: str


class Done(BaseModel):
    """Answer of every tool here."""

    id: str


@internal_tool("bench.find", "Finds a note.")
async def find(_ctx: CallContext, args: Words) -> Done:
    """A read that costs nothing itself."""
    return Done(id=args.text)


@internal_tool("bench.save", "Saves a note.", side_effects="write", risk="low", repeatable=False)
async def save(_ctx: CallContext, args: Words) -> Done:
    """A write that costs nothing itself."""
    return Done(id=args.text)


@internal_tool("bench.save_slowly", "Saves a note elsewhere.", side_effects="write", risk="low", repeatable=False)
async def save_slowly(_ctx: CallContext, args: Words) -> Done:
    """A write that waits for somebody else."""
    await asyncio.sleep(WAIT_S)
    return Done(id=args.text)


@internal_tool("bench.look_up", "Finds a note for money.", metered=True, cost_bound=_BOUND)
async def look_up(ctx: CallContext, args: Words) -> Done:
    """As ``find``, and somebody charges for it."""
    ctx.report_usage(1, "request", provider=_VENDOR)
    return Done(id=args.text)


@internal_tool(
    "bench.buy",
    "Saves a note for money.",
    side_effects="write",
    risk="low",
    repeatable=False,
    metered=True,
    cost_bound=_BOUND,
)
async def buy(ctx: CallContext, args: Words) -> Done:
    """As ``save``, and somebody charges for it."""
    ctx.report_usage(1, "request", provider=_VENDOR)
    return Done(id=args.text)


TOOLS: Final = (find, save, save_slowly, look_up, buy)
_NAMES: Final = tuple(tool.spec.name for tool in TOOLS)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A platform to measure, and the counts of its database."""

    platform: Platform
    counter: Counter
    tally: Tally
    principal: Principal
    server_version: str

    async def lead(self, tools: Sequence[str] = _NAMES) -> ToolInvocation:
        """A run of its own, under a lease that outlives the measurement, with the tools of these names."""
        agent = AgentDefinition(
            name="measured",
            instructions="None.",
            model=_MODEL,
            tools=tuple(tools),
            ceilings=RunCeilings(max_tool_calls=None, max_cost=_CEILING),
        )
        started = await self.platform.runs.start(agent, "Go.", principal=self.principal, request_key=str(uuid4()))
        led = await self.platform.run_store.take(self.principal.organization_id, started.run_id, lease_s=_LEASE_S)
        if led is None:
            raise ProgramFault(f"run {started.run_id} was just started and cannot be led")
        return ToolInvocation(
            principal=self.principal,
            run_id=started.run_id,
            root_run_id=led.root_run_id,
            definition=led.definition_name,
            fence=led.lease.fence,
            tools={
                tool.spec.name: tool
                for tool in self.platform.registry.freeze(agent.tools, self.principal.organization_id)
            },
            context_trust=led.context_trust,
        )


@asynccontextmanager
async def open_url() -> AsyncIterator[str]:
    """A migrated database on a server of its own, gone when the block ends.

    Raises:
        EmbeddedPostgresError: no Postgres runs on this machine.
    """
    async with AsyncExitStack() as stack:
        url = await asyncio.to_thread(stack.enter_context, temporary_postgres(settings=_SERVER))
        await asyncio.to_thread(bootstrap_supabase, url)
        await migrate(url)
        yield url


@asynccontextmanager
async def open_stage(*, providers: Sequence[JobProvider] = (), bus: EventBus | None = None) -> AsyncIterator[Stage]:
    """A stage on a server of its own, gone when the block ends.

    Args:
        providers: whose jobs are measured.
        bus: where events go; ``None`` for nowhere.

    Raises:
        EmbeddedPostgresError: no Postgres runs on this machine.
    """
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, temporary_postgres(settings=_SERVER))
        watcher = await stack.enter_async_context(await connect(server))
        await watcher.execute(sql.SQL("create database {}").format(sql.Identifier(_NAME)))
        url = urlsplit(server)._replace(path=f"/{_NAME}").geturl()
        await asyncio.to_thread(bootstrap_supabase, url)
        await migrate(url)
        tally = Tally()
        platform = await stack.enter_async_context(
            open_platform(
                App(
                    tools=(*TOOLS, *run_app.app.tools),
                    models={_MODEL: _silent_model, **run_app.app.models},
                    providers=providers,
                ),
                url,
                bus=bus or RecordingBus(),
                stores_on=lambda pool: CountedDatabase(pool, tally),
            )
        )
        principal = Principal(organization_id=uuid4(), user_id=uuid4())
        await platform.approval_store.put_member(principal.organization_id, _person(principal), Role.MEMBER)
        await platform.usage.set_price(
            organization_id=None, provider=_VENDOR, item="*", unit="request", unit_price=_PRICE, user_id=None
        )
        await platform.database.count(
            "create table public.bare_commits (id bigint generated always as identity primary key, body text not null)",
            {},
        )
        yield Stage(
            platform=platform,
            counter=Counter(pool=platform.database.pool, tally=tally, watcher=watcher, name=_NAME),
            tally=tally,
            principal=principal,
            server_version=watcher.info.parameter_status("server_version") or "unknown",
        )


def _person(principal: Principal) -> UUID:
    if principal.user_id is None:
        raise ProgramFault("the measured runs belong to a person")
    return principal.user_id


def _silent_model() -> object:
    return ScriptedModel(script=[Say("Nothing is asked of it.")])
