"""The process that ``benchmarks.webhooks`` measures: the API over a platform, and routes to measure it by.

It prints its address, and ends when its input does, so that it outlives nobody.
"""

import asyncio
import sys
import time
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID, uuid4

from fastapi import APIRouter

from agentic.api.app import create_api
from agentic.api.auth import JwtAuthenticator
from agentic.api.webhooks import FailureLimits
from agentic.bootstrap import api_ports
from agentic.contract.errors import ProgramFault
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.services.provider_jobs.models import NewJob
from benchmarks.stage import Stage, open_stage
from benchmarks.tally import Counts

KEY: Final = "a-key-of-nobody-at-all"
PROVIDER: Final = "fullenrich"
JOBS, BARE, BEGIN, END = "/measuring/jobs", "/measuring/bare", "/measuring/begin", "/measuring/end"
_NO_BOUND: Final = 1_000_000_000
_AT_ONCE: Final = 8


class Measuring:
    """What is counted between two requests."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._before: tuple[Counts, int, float] | None = None

    async def begin(self) -> None:
        """Count from here on; nothing else may be under way."""
        self._before = (await self._stage.counter.read(), self._stage.tally.transactions, time.process_time())

    async def end(self) -> dict[str, Any]:
        """What was counted since, with the computing time of this process.

        Raises:
            ProgramFault: nobody began, or client and server counted differently.
        """
        if self._before is None:
            raise ProgramFault("counting ends before it began")
        (before, sent, computed), self._before = self._before, None
        cpu_s = time.process_time() - computed
        counts = await self._stage.counter.since(before, sent=sent)
        return {**asdict(counts), "cpu_s": cpu_s, "server_version": self._stage.server_version}


def measuring_routes(stage: Stage, run_id: UUID) -> APIRouter:
    """Routes that make jobs, commit one row, and count."""
    router = APIRouter()
    measuring = Measuring(stage)

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

    return router


async def serve() -> None:
    """Serve until the input ends."""
    provider = FullEnrich(FullEnrichAccount(key=KEY, callback_origin="https://api.shop.example"))
    async with open_stage(providers=[provider]) as stage:
        run = await stage.lead()
        api = create_api(
            api_ports(stage.platform),
            JwtAuthenticator(uuid4().hex),
            failures=FailureLimits(burst=_NO_BOUND, per_minute=_NO_BOUND),
        )
        api.include_router(measuring_routes(stage, run.run_id))
        async with LoopbackServer(api, name="the measured API") as server:
            print(server.url, flush=True)
            await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(serve())
