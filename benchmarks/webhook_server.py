"""The process that ``benchmarks.webhooks`` measures: the API over a platform, and routes to measure it by.

It prints its address, and ends when its input does, so that it outlives nobody.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

import psutil
from fastapi import APIRouter

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.api.webhooks import FailureLimits
from agentic.bootstrap import api_ports
from agentic.contract.errors import ProgramFault
from agentic.functions.bus import InngestBus
from agentic.functions.serve import function_client
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.provider_jobs.models import NewJob
from benchmarks.stage import Stage, open_stage
from benchmarks.tally import Counts

KEY: Final = "a-key-of-nobody-at-all"
PROVIDER: Final = "fullenrich"
JOBS, BARE, BEGIN, END = "/measuring/jobs", "/measuring/bare", "/measuring/begin", "/measuring/end"
PROOF: Final = "/measuring/proof"
_NO_BOUND: Final = 1_000_000_000
_AT_ONCE: Final = 8
_CREDIT: Final = Decimal("0.05")
_PROVED: LiteralString = """
select
    (select count(*) from agent.provider_jobs) as made,
    (select count(*) from agent.provider_jobs where state = 'completed') as ended,
    (select count(*) from agent.idempotency_keys where scope = 'webhook.' || %(provider)s) as claims,
    (select count(*) from agent.outbox where data ? 'job_id') as events,
    (select count(*) from agent.outbox where data ? 'job_id' and state <> 'sent') as pending,
    (select count(*) from agent.provider_jobs j
        where (select count(*) from agent.ai_usage_log u where u.id = j.usage_id and u.cost = %(price)s) = 1) as paid_once,
    (select count(*) from agent.ai_usage_log where kind = 'job') as lines,
    (select coalesce(sum(drops), 0)::bigint from agent.webhook_drops where reason = 'bad_signature') as bad_signature,
    (select coalesce(sum(drops), 0)::bigint from agent.webhook_drops where reason <> 'bad_signature') as changed_nothing
"""


class Measuring:
    """What is counted between two requests."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._before: tuple[Counts, int, float, float] | None = None

    async def begin(self) -> None:
        """Count from here on; nothing else may be under way."""
        counts, sent = await self._stage.counter.read(), self._stage.tally.transactions
        self._before = (counts, sent, await self._postgres_s(), time.process_time())

    async def end(self) -> dict[str, Any]:
        """What was counted since, with the computing time of this process and of the database's.

        Raises:
            ProgramFault: nobody began, or client and server counted differently.
        """
        if self._before is None:
            raise ProgramFault("counting ends before it began")
        (before, sent, postgres_s, computed), self._before = self._before, None
        cpu_s = time.process_time() - computed
        counts = await self._stage.counter.since(before, sent=sent)
        postgres_s = await self._postgres_s() - postgres_s
        return {
            **asdict(counts),
            "cpu_s": cpu_s,
            "postgres_cpu_s": postgres_s,
            "server_version": self._stage.server_version,
        }

    async def _postgres_s(self) -> float:
        """Computing time of the database's processes. Connections are kept, so none of them goes with its share."""
        async with self._stage.platform.database.pool.connection() as connection:
            backend = connection.info.backend_pid
        server = psutil.Process(backend).parent()
        if server is None:
            raise ProgramFault("the database's server has no process here")
        total_s = 0.0
        for each in (server, *server.children()):
            times = each.cpu_times()
            total_s += times.user + times.system
        return total_s


def measuring_routes(stage: Stage, run_id: UUID) -> APIRouter:
    """Routes that make jobs, commit one row, and count."""
    router = APIRouter()
    measuring = Measuring(stage)
    every: list[NewJob] = []

    @router.post(JOBS)
    async def jobs(count: int) -> list[str]:
        made = [
            NewJob(
                id=uuid4(),
                organization_id=stage.principal.organization_id,
                run_id=run_id,
                provider=PROVIDER,
                contact_refs=["a"],
            )
            for _ in range(count)
        ]
        gate = asyncio.Semaphore(_AT_ONCE)

        async def reserve(job: NewJob) -> None:
            async with gate:
                await stage.platform.jobs.submit(job)

        await asyncio.gather(*map(reserve, made))
        every.extend(made)
        return [str(job.id) for job in made]

    @router.post(BARE)
    async def bare() -> None:
        row = await stage.platform.database.one(
            "insert into public.bare_commits (body) values (%(body)s) returning id", {"body": "x" * 300}
        )
        if row is None:
            raise ProgramFault("the bare insert gave no row")

    @router.post(BEGIN)
    async def begin() -> None:
        await measuring.begin()

    @router.post(END)
    async def end() -> dict[str, Any]:
        return await measuring.end()

    @router.post(PROOF)
    async def proof() -> dict[str, Any]:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def settle(job: NewJob) -> None:
            async with gate:
                await stage.platform.settling.settle(job.organization_id, job.id)

        await stage.platform.usage.set_price(
            organization_id=None, provider=PROVIDER, item="*", unit="credit", unit_price=_CREDIT, user_id=None
        )
        swept = await stage.platform.outbox.sweep(limit=len(every))
        await asyncio.gather(*(settle(job) for job in [*every, *every]))
        found = await stage.platform.database.one(_PROVED, {"provider": PROVIDER, "price": _CREDIT})
        return {**(found or {}), "swept": swept}

    return router


async def serve(events: str | None) -> None:
    """Serve until the input ends.

    Args:
        events: the function server that is told of ended jobs, as in production; ``None`` for nobody, and no bound on failures.
    """
    provider = FullEnrich(FullEnrichAccount(key=KEY, callback_origin="https://api.shop.example"))
    bus = None if events is None else InngestBus(function_client(is_production=False, server_url=events))
    async with open_stage(providers=[provider], bus=bus) as stage:
        run = await stage.lead()
        api = create_api(
            api_ports(stage.platform),
            JwtAuthenticator(uuid4().hex),
            failures=FailureLimits(burst=_NO_BOUND, per_minute=_NO_BOUND) if events is None else None,
        )
        api.include_router(measuring_routes(stage, run.run_id))
        async with LoopbackServer(api, name="the measured API") as server:
            print(server.url, flush=True)
            await asyncio.to_thread(sys.stdin.buffer.read)


def main(arguments: Sequence[str] | None = None) -> None:
    """The process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhook_server", description=__doc__)
    parser.add_argument("--events", help="address of the function server that takes the events")
    asyncio.run(serve(parser.parse_args(arguments).events))


if __name__ == "__main__":
    main()
