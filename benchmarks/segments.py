"""What leading a run costs, on the counted platform: the agent loop is in it, a model is not, for the scripted one answers at once."""

import time
from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID, uuid4

from agentic.contract.errors import ProgramFault
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.runs.models import Append
from benchmarks.run_app import ANSWERS, SENDS
from benchmarks.stage import Stage

LONG: Final = 500
"""Stored messages of a long run."""
_LEASE_S: Final = 3600
_SIZE: LiteralString = """
select sum(pg_total_relation_size(c.oid))::bigint as bytes
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'agent' and c.relkind = 'r'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentCost:
    """One advance, averaged over some."""

    messages: int
    statements: float
    commits: float
    wal_bytes: float
    ms: float


async def segment_cost(stage: Stage, *, runs: int, messages: int) -> SegmentCost:
    """What an advance of a run with so many stored messages costs, from its lease to its end.

    Raises:
        ProgramFault: a run did not end in one segment, or client and server counted differently.
    """
    prepared = [await _run_of(stage, messages) for _ in range(runs + 1)]
    await _lead(stage, prepared.pop(), "succeeded")  # warms what the first one alone would pay for
    before, sent = await stage.counter.read(), stage.tally.transactions
    began = time.perf_counter()
    for run_id in prepared:
        await _lead(stage, run_id, "succeeded")
    lasted = time.perf_counter() - began
    counts = await stage.counter.since(before, sent=sent)
    return SegmentCost(
        messages=messages,
        statements=counts.statements / runs,
        commits=counts.commits / runs,
        wal_bytes=counts.wal_bytes / runs,
        ms=lasted / runs * 1000,
    )


async def bytes_per_parked_run(stage: Stage, *, runs: int) -> float:
    """What a run that waits for a person takes of the disk, indexes included.

    Raises:
        ProgramFault: a run did not park.
    """
    before = await _size(stage)
    for _ in range(runs):
        await _lead(stage, await _start(stage, SENDS), "parked")
    return (await _size(stage) - before) / runs


async def _run_of(stage: Stage, messages: int) -> UUID:
    run_id = await _start(stage, ANSWERS)
    if messages == 1:
        return run_id
    store, loop = stage.platform.run_store, stage.platform.loop
    led = await store.take(stage.principal.organization_id, run_id, lease_s=_LEASE_S)
    if led is None:
        raise ProgramFault(f"run {run_id} was just started and cannot be led")
    more = tuple(loop.user_message(f"And note {number}, which says nothing new.") for number in range(messages - 1))
    await store.release(led.lease, Append(format=loop.format, messages=more), due_in_s=0, orderly=True)
    return run_id


async def _start(stage: Stage, agent: AgentDefinition) -> UUID:
    started = await stage.platform.runs.start(agent, "Go.", principal=stage.principal, request_key=str(uuid4()))
    return started.run_id


async def _lead(stage: Stage, run_id: UUID, expected: str) -> None:
    advanced = await stage.platform.leader.advance(stage.principal.organization_id, run_id)
    if advanced.state != expected:
        raise ProgramFault(f"run {run_id} was to be {expected} after one segment and is {advanced.state}")


async def _size(stage: Stage) -> int:
    row = await stage.platform.database.one(_SIZE, {})
    if row is None:
        raise ProgramFault("the tables have no size")
    return int(row["bytes"])
