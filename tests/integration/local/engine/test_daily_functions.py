"""The functions that run once a day, on the engine, with a clock that jumps a day."""

from __future__ import annotations

import asyncio

from engine_bench import WAIT_S, Bench

from agentic.functions.retention_sweep import retention_sweep
from agentic.functions.usage_rollup import usage_rollup
from agentic.services.retention.models import Removed

DAY_S = 24 * 3600


class Upkeep:
    """Notes what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.both = asyncio.Event()

    async def sweep(self) -> Removed:
        self._note("sweep")
        return Removed(runs=3, left=True)

    async def compute(self) -> int:
        self._note("compute")
        return 2

    def _note(self, what: str) -> None:
        self.asked.append(what)
        if {"sweep", "compute"} <= set(self.asked):
            self.both.set()


async def test_usage_is_summed_and_what_is_over_removed_once_a_day(bench: Bench) -> None:
    upkeep = Upkeep()
    await bench.serve(usage_rollup(bench.client, upkeep), retention_sweep(bench.client, upkeep))
    await bench.engine.idle(WAIT_S)
    assert upkeep.asked == []
    bench.jump(DAY_S)
    async with asyncio.timeout(WAIT_S):
        await upkeep.both.wait()
    await bench.engine.idle(WAIT_S)
    assert sorted(upkeep.asked) == ["compute", "sweep"]
