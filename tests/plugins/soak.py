"""The soak: many runs on a few workers that are killed and stalled, over events that get lost, doubled and late, with people who
approve, reject, sleep and cancel. ``python -m soak RUNS SEED FOLDER`` prints what came of it as JSON; ``SOAK_URL`` names the database.

The seed draws what happens; when it happens is the machine's.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import agno.agent

import soak_app
import soak_workers
from agentic.bootstrap import Platform, open_platform
from agentic.contract.errors import Conflict, NotFound
from agentic.contract.events import Event
from agentic.contract.principal import Principal, Role
from agentic.runtime.agent.sweeps import Sweeps
from agentic.services.approvals.models import Verdict
from agentic.services.tools.default_invoker import InvokerSettings

assert agno.agent.__name__  # imported before the forks

WORKERS = 4
ACTIVE = 24
"""Runs under way at once."""
LIMIT_S = float(os.environ.get("SOAK_LIMIT_S", "540"))
ORGANIZATION, REQUESTER, APPROVER = UUID(int=1), UUID(int=2), UUID(int=3)
_OPEN = "select count(*) as n from agent.runs where finished_at is null"
_UNSETTLED = """
    select (select count(*) from agent.idempotency_keys where state = 'processing')
        + (select count(*) from agent.usage_reservations where state = 'held' and owner = 'read') as n
"""
_SLEPT = "update agent.approvals set expires_at = clock_timestamp() where id = %(id)s and status = 'pending'"
_NO_REST = (
    "update agent.usage_reservations set lease_expires_at = clock_timestamp() where state = 'held' and owner = 'read'"
)


class Worker:
    """One worker process as the driver sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self.pid = pid
        self.reader = reader
        self._writer = writer

    def lead(self, organization_id: UUID, run_id: UUID) -> None:
        """Order an advance; one to a dead worker is lost, like any event."""
        order = {"organization": str(organization_id), "run": str(run_id)}
        if not self._writer.is_closing():
            self._writer.write(json.dumps(order).encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Kill, stall or wake it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self) -> None:
        """No more orders; it ends once it has done those it has."""
        self._writer.close()


class Soak:
    """One soak. Implements ``EventBus``: the way from a commit to a worker, which is not to be relied on."""

    def __init__(self, *, runs: int, seed: int, socket: Path) -> None:
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self._runs = runs
        self._socket = socket
        self._workers: list[Worker] = []
        self._tasks = asyncio.TaskGroup()
        self._calm = self._over = False
        self.platform: Platform

    # -- events --------------------------------------------------------------------------------------------------------

    async def send(self, events: Sequence[Event]) -> None:
        """Lose some, double some, keep some back."""
        for event in events:
            assert event.run_id is not None
            self._carry(event.organization_id, event.run_id)

    def _carry(self, organization_id: UUID, run_id: UUID) -> None:
        chance = 1.0 if self._calm else self.random.random()
        if chance < 0.15:
            self.counts["dropped"] += 1
            return
        copies = 1
        if chance < 0.30:
            self.counts["doubled"] += 1
            copies = 2
        for _ in range(copies):
            late_s = self.random.uniform(0, 1.5) if self.random.random() < 0.3 and not self._calm else 0.0
            self.counts["late"] += late_s > 0
            asyncio.get_running_loop().call_later(late_s, self._deliver, organization_id, run_id)

    def _deliver(self, organization_id: UUID, run_id: UUID) -> None:
        if self._workers:
            self.random.choice(self._workers).lead(organization_id, run_id)

    # -- workers -------------------------------------------------------------------------------------------------------

    async def _hire(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self._socket))
        pid = json.loads(await reader.readline())["pid"]
        worker = Worker(reader, writer, pid)
        self._workers.append(worker)
        self._tasks.create_task(self._listen(worker))

    async def _listen(self, worker: Worker) -> None:
        with contextlib.suppress(ConnectionError):  # it was killed
            while line := await worker.reader.readline():
                said = json.loads(line)
                organization_id, run_id = UUID(said["organization"]), UUID(said["run"])
                if "state" not in said:
                    self._carry(organization_id, run_id)
                elif said["due_at"] is not None:
                    wait_s = max(0.0, said["due_at"] - time.time())
                    asyncio.get_running_loop().call_later(wait_s, self._carry, organization_id, run_id)
        if worker in self._workers and not self._over:
            raise RuntimeError(f"worker {worker.pid} ended by itself; its words are on standard error")

    async def _harm(self) -> None:
        """Now and then a worker dies, or stalls for longer than its leases run."""
        await asyncio.sleep(self.random.uniform(0.1, 0.7))
        worker = self.random.choice(self._workers)
        self._workers.remove(worker)
        if self.random.random() < 0.8:
            self.counts["killed"] += 1
            worker.signal(signal.SIGKILL)
        else:
            self.counts["stalled"] += 1
            worker.signal(signal.SIGSTOP)
            self._tasks.create_task(self._wake(worker, soak_workers.TIMINGS.lease_s + 0.5))
        await self._hire()

    async def _wake(self, worker: Worker, after_s: float) -> None:
        """It goes on where it was, with what it held led by others; it gets no more orders."""
        await asyncio.sleep(after_s)
        worker.signal(signal.SIGCONT)
        worker.close()

    # -- people --------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        for number in range(self._runs):
            while (await self._count(_OPEN)) >= ACTIVE:  # noqa: ASYNC110 - rows are not awaited
                await asyncio.sleep(0.1)
            names = self.random.sample(soak_app.NAMES, self.random.randint(1, len(soak_app.NAMES)))
            turns: list[list[str]] = [[]]
            for name in names:
                if turns[-1] and self.random.random() < 0.5 and len(turns) < soak_app.MOST_STEPS:
                    turns.append([])
                turns[-1].append(name)
            started = await self.platform.runs.start(
                soak_app.AGENT,
                soak_app.text_of(turns),
                principal=Principal(organization_id=ORGANIZATION, user_id=REQUESTER),
                request_key=f"soak-{number}",
            )
            if self.random.random() < 0.2:
                self._tasks.create_task(self._cancel(started.run_id, self.random.uniform(0, 2)))

    async def _cancel(self, run_id: UUID, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self.counts["cancel"] += 1
        with contextlib.suppress(Conflict):  # it is over
            await self.platform.runs.cancel(ORGANIZATION, run_id, user_id=REQUESTER)

    async def _answer(self) -> None:
        await asyncio.sleep(0.1)
        for approval in await self.platform.approvals.find(ORGANIZATION, status="pending"):
            chance = self.random.random()
            with contextlib.suppress(Conflict, NotFound):  # cancelled or expired meanwhile
                if chance < 0.2:
                    self.counts["asleep"] += 1
                    await self.platform.database.count(_SLEPT, {"id": approval.id})
                elif chance < 0.4:
                    await self._decide(approval.id, Verdict.REJECTED)
                elif chance < 0.8:
                    await self._decide(approval.id, Verdict.APPROVED)

    async def _decide(self, approval_id: UUID, verdict: Verdict) -> None:
        self.counts[verdict] += 1
        await self.platform.approvals.decide(ORGANIZATION, approval_id, user_id=APPROVER, verdict=verdict)

    # -- upkeep --------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        await asyncio.sleep(0.4)
        sweeps = Sweeps(
            runs=self.platform.run_store,
            approvals=self.platform.approvals,
            journal=self.platform.journal,
            outbox=self.platform.outbox,
            quiet_s=1.0,
        )
        await sweeps.outbox()
        await sweeps.runs()
        await self.platform.journal.sweep(grace_s=1.0)

    async def _count(self, statement: str) -> int:
        row = await self.platform.database.one(statement, {})
        assert row is not None
        return int(row["n"])

    async def _until(self, statement: str, by: float) -> None:
        while await self._count(statement):
            if time.monotonic() > by:
                return  # what is open is reported
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def _often(self, *works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        async def forever(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
            while True:
                await work()

        tasks = [self._tasks.create_task(forever(work)) for work in works]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def run(self, url: str) -> None:
        """All of it, until nothing moves any more or the time is over."""
        by = time.monotonic() + LIMIT_S
        async with (
            open_platform(
                soak_app.make(), url, bus=self, timings=soak_workers.TIMINGS, max_connections=6,
                invoker_settings=InvokerSettings(claim_grace_s=soak_workers.CLAIM_GRACE_S),
            ) as self.platform,
            self._tasks,
        ):  # fmt: skip
            await self.platform.approval_store.put_member(ORGANIZATION, REQUESTER, Role.MEMBER)
            await self.platform.approval_store.put_member(ORGANIZATION, APPROVER, Role.OPERATOR)
            for _ in range(WORKERS):
                await self._hire()
            async with self._often(self._sweep):
                async with self._often(self._answer, self._harm):
                    await self._start()
                    await self._until(_OPEN, by)
                self._calm = True
                await self._until(_UNSETTLED, min(by, time.monotonic() + 30))
            self._over = True
            for worker in self._workers:
                worker.close()


def main(runs: int, seed: int, folder: Path) -> None:
    """Soak, and say what was drawn."""
    os.environ["SOAK_LEDGER"] = str(folder / "world")
    url, path = os.environ["SOAK_URL"], folder / "s"
    zygote = soak_workers.serve(url, path)

    async def go() -> Counter[str]:
        soak = Soak(runs=runs, seed=seed, socket=path)
        await soak.run(url)
        return soak.counts

    began = time.monotonic()
    try:
        counts = asyncio.run(go())
    finally:
        os.kill(zygote, signal.SIGKILL)
    sys.stdout.write(json.dumps({**counts, "seconds": round(time.monotonic() - began, 1)}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
