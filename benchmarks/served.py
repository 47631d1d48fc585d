"""How fast runs are where everything is real but the model: events, the function engine, worker processes.

Both figures are read from the rows, by the database's clock: runs ended a second, and from a decision's commit to the claim of its effect.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, LiteralString
from uuid import UUID, uuid4

from agentic.bootstrap import Platform, open_platform
from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal, Role
from agentic.functions.bus import InngestBus
from agentic.functions.serve import function_client
from agentic.local.dev.service import free_port
from agentic.local.dev.supervisor import Supervisor, WorkerPlan
from agentic.local.engine import FunctionEngine
from agentic.local.function_server import DEV
from agentic.local.worker import WorkerSettings
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.approvals.models import Verdict
from benchmarks.measure import quantile
from benchmarks.run_app import ANSWERS, PATH, SENDS, app

_APP_ID: Final = "benchmark"
_PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.02
_ENDED: LiteralString = """
select count(*) as runs, count(*) filter (where finished_at is null) as open,
    extract(epoch from max(finished_at) - min(created_at))::float8 as took
from agent.runs where organization_id = %(organization_id)s and id = any(%(ids)s::uuid[])
"""
_LATENCIES: LiteralString = """
select extract(epoch from k.claimed_at - a.decided_at)::float8 * 1000 as ms
from agent.approvals a join agent.idempotency_keys k on k.organization_id = a.organization_id and k.run_id = a.run_id
where a.organization_id = %(organization_id)s and a.status = 'approved'
order by 1
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What was seen."""

    workers: int
    runs: int
    runs_s: float
    decisions: int
    decision_to_effect_p50_ms: float
    decision_to_effect_p99_ms: float


async def served(database_url: str, *, workers: int, runs: int, decisions: int) -> Served:
    """End ``runs`` runs that were started at once; then decide ``decisions`` approvals, each after the effect of the one before.

    Args:
        database_url: a migrated database that nobody else uses.
        workers: processes; two on two cores.

    Raises:
        ProgramFault: a run did not do what it is measured for.
        TimeoutError: nothing moved for two minutes.
    """
    principal = Principal(organization_id=uuid4(), user_id=uuid4())
    async with _platform(database_url, workers) as platform:
        assert principal.user_id is not None
        await platform.approval_store.put_member(principal.organization_id, principal.user_id, Role.APPROVER)
        await _ended(platform, principal, [await _start(platform, principal, ANSWERS) for _ in range(workers)])  # warm
        started = await asyncio.gather(*(_start(platform, principal, ANSWERS) for _ in range(runs)))
        took_s = await _ended(platform, principal, started)
        for _ in range(decisions):
            await _decide(platform, principal)
        rows = await platform.database.all(_LATENCIES, {"organization_id": principal.organization_id})
        times = [float(row["ms"]) for row in rows]
        if len(times) != decisions:
            raise ProgramFault(f"{decisions} decisions were made and {len(times)} effects followed")
    return Served(
        workers=workers,
        runs=runs,
        runs_s=runs / took_s,
        decisions=decisions,
        decision_to_effect_p50_ms=quantile(times, 0.50),
        decision_to_effect_p99_ms=quantile(times, 0.99),
    )


@asynccontextmanager
async def _platform(database_url: str, workers: int) -> AsyncIterator[Platform]:
    async with AsyncExitStack() as stack:
        logs = Path(stack.enter_context(TemporaryDirectory(prefix="agentic-benchmark-")))
        engine = FunctionEngine(dsn=database_url)
        await engine.start()
        stack.push_async_callback(engine.stop, grace_s=2)
        bus = InngestBus(function_client(_APP_ID, is_production=False, server_url=engine.url))
        platform = await stack.enter_async_context(open_platform(app, database_url, bus=bus))
        plan = WorkerPlan(
            app=PATH,
            database_url=database_url,
            settings=WorkerSettings(app_id=_APP_ID, port=free_port()),
            logs=logs,
            environment={DEV: engine.url},
        )
        await stack.enter_async_context(Supervisor(plan, count=workers, say=_unexpected))
        yield platform


def _unexpected(what: str) -> None:
    raise ProgramFault(f"a worker did not last the measurement: {what}")


async def _start(platform: Platform, principal: Principal, agent: AgentDefinition) -> UUID:
    return (await platform.runs.start(agent, "Go.", principal=principal, request_key=str(uuid4()))).run_id


async def _ended(platform: Platform, principal: Principal, ids: list[UUID]) -> float:
    """Wait until they are over; seconds from the first start to the last end."""
    params = {"organization_id": principal.organization_id, "ids": ids}

    async def none_open() -> bool:
        row = await platform.database.one(_ENDED, params)
        return row is not None and row["open"] == 0

    await _until(none_open)
    row = await platform.database.one(_ENDED, params)
    if row is None or row["runs"] != len(ids):
        raise ProgramFault("a run that was started is not there")
    return float(row["took"])


async def _decide(platform: Platform, principal: Principal) -> None:
    assert principal.user_id is not None
    organization_id = principal.organization_id
    run_id = await _start(platform, principal, SENDS)

    async def asks() -> bool:
        return bool(await platform.approvals.find(organization_id, run_id=run_id, status="pending"))

    await _until(asks)
    [asked] = await platform.approvals.find(organization_id, run_id=run_id, status="pending")
    await platform.approvals.decide(organization_id, asked.id, verdict=Verdict.APPROVED, user_id=principal.user_id)
    await _ended(platform, principal, [run_id])


async def _until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not await true():  # noqa: ASYNC110 - rows have no event
            await asyncio.sleep(_LOOK_S)
