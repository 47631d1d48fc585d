"""Runs one workload for a while with some workers, and says what a call took and cost."""

import asyncio
import gc
import math
import time
from dataclasses import dataclass

from benchmarks.stage import Stage
from benchmarks.workloads import Step, Workload

_WARM_CALLS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What one workload took and cost. All but the times are per call.

    Attributes:
        calls: how many were measured.
        statements: sent by the client.
        transactions: ended by the server.
        commits: of those, the ones that wrote.
        cpu_ms: computing time of this process.
    """

    workload: str
    workers: int
    calls: int
    statements: float
    transactions: float
    commits: float
    wal_bytes: float
    ops_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float


async def measure(stage: Stage, workload: Workload, *, workers: int, seconds: float) -> Figures:
    """Repeat a workload's call with ``workers`` at once, each on a run of its own, for about ``seconds``.

    Raises:
        ProgramFault: a call did not do what it is measured for, or client and server counted differently.
    """
    steps = [await workload.prepare(stage) for _ in range(workers)]
    await asyncio.gather(*(_repeat(step, calls=_WARM_CALLS) for step in steps))
    gc.collect()
    before, sent = await stage.counter.read(), stage.tally.transactions
    began, computed = time.perf_counter(), time.process_time()
    taken = await asyncio.gather(*(_until(step, began + seconds) for step in steps))
    lasted, computed = time.perf_counter() - began, time.process_time() - computed
    counts = await stage.counter.since(before, sent=sent)
    times = sorted(took for worker in taken for took in worker)
    calls = len(times)
    return Figures(
        workload=workload.name,
        workers=workers,
        calls=calls,
        statements=counts.statements / calls,
        transactions=counts.transactions / calls,
        commits=counts.commits / calls,
        wal_bytes=counts.wal_bytes / calls,
        ops_s=calls / lasted,
        p50_ms=quantile(times, 0.50) * 1000,
        p99_ms=quantile(times, 0.99) * 1000,
        cpu_ms=computed / calls * 1000,
    )


def quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed.

    Args:
        ordered: values in ascending order, at least one.
        share: above 0 and at most 1.
    """
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


async def _repeat(step: Step, *, calls: int) -> None:
    for _ in range(calls):
        await step()


async def _until(step: Step, end: float) -> list[float]:
    taken: list[float] = []
    while True:
        began = time.perf_counter()
        await step()
        ended = time.perf_counter()
        taken.append(ended - began)
        if ended >= end:
            return taken
