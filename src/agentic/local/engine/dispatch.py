"""The engine at work: ticks when woken or when something is due, makes the leased calls, settles their answers.

Whatever dies in here is made up for: a call whose engine is killed falls to whoever holds no lease on it next, and a
database that goes away is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from agentic.local.engine.answers import Answer, broken
from agentic.local.engine.calls import Call, Caller
from agentic.local.engine.schedule import prune, tick
from agentic.local.engine.settle import RetryPolicy, settle
from agentic.local.engine.store import DATABASE_AWAY, Store, Transaction

PRUNE_EVERY_S = 3600.0
_log = logging.getLogger(__name__)


class Dispatcher:
    """Runs due work until it is stopped.

    Args:
        store: where the work is kept.
        caller: makes the calls.
        engine: the name that its leases carry, unique to this process.
        retries: when failed calls are made again.
        lease_s: for how long a lease stands unless renewed, in seconds.
        poll_s: how often it looks without being woken, in seconds.
        max_calls: how many calls it makes at once.
    """

    def __init__(
        self,
        *,
        store: Store,
        caller: Caller,
        engine: str,
        retries: RetryPolicy,
        lease_s: float,
        poll_s: float,
        max_calls: int,
    ) -> None:
        self._store = store
        self._caller = caller
        self._engine = engine
        self._retries = retries
        self._lease_s = lease_s
        self._poll_s = poll_s
        self._max_calls = max_calls
        self._wake = asyncio.Event()
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._loops: tuple[asyncio.Task[None], ...] = ()

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def start(self) -> None:
        """Begin to work."""
        self._loops = (
            asyncio.create_task(self._forever(self._work), name="engine-work"),
            asyncio.create_task(self._forever(self._renew), name="engine-leases"),
            asyncio.create_task(self._forever(self._prune), name="engine-prune"),
        )

    async def stop(self, *, grace_s: float) -> None:
        """Take no more work, let calls in flight end for `grace_s` seconds, hand back what is left."""
        if not self._loops:
            return
        work, leases, pruning = self._loops
        await _end({work, pruning})
        if self._calls:
            await asyncio.wait(self._calls.values(), timeout=grace_s)
        await _end({*self._calls.values(), leases})
        with contextlib.suppress(*DATABASE_AWAY):  # the leases then run out by themselves
            async with self._store.transaction() as transaction:
                await transaction.run("release_leases", engine=self._engine)

    async def _forever(self, once: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await once()
            except DATABASE_AWAY as error:
                _log.warning("the function engine waits for its database: %s", error)
                await asyncio.sleep(self._poll_s)
            except Exception:  # noqa: BLE001 - one bad row must not stop the work of all others
                _log.exception("the function engine met an error and goes on")
                await asyncio.sleep(self._poll_s)

    async def _work(self) -> None:
        self._wake.clear()
        room = self._max_calls - len(self._calls)
        async with self._store.transaction() as transaction:
            # First, so that a clock that jumped, as after a suspend, does not make it take its own calls for lost ones.
            await self._renew_in(transaction)
            found = await tick(transaction, engine=self._engine, room=room, lease_s=self._lease_s)
            now = transaction.now
        for call in found.calls:
            task = asyncio.create_task(self._make(call), name=f"engine-call-{call.job_id}")
            self._calls[call.job_id] = task
            task.add_done_callback(functools.partial(self._forget, call.job_id))
        pause_s = self._poll_s
        if found.next_at is not None:
            pause_s = min(pause_s, max((found.next_at - now).total_seconds(), 0.001))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    def _forget(self, job_id: int, task: asyncio.Task[None]) -> None:
        if self._calls.get(job_id) is task:
            del self._calls[job_id]

    async def _make(self, call: Call) -> None:
        try:
            await self._settle(call, await self._caller.send(call))
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must hear of it
            # Left alone, the call would be made for ever; what cannot be made or stored fails like any other answer.
            _log.exception("a call of run %s cannot be made or its answer not be settled", call.run_id)
            await self._settle(call, broken(f"the engine could not make the call or store its answer: {error!r}"))
        finally:
            self.wake()

    async def _settle(self, call: Call, answer: Answer) -> None:
        while True:
            try:
                async with self._store.transaction() as transaction:
                    await settle(transaction, call, answer, engine=self._engine, retries=self._retries)
                return
            except DATABASE_AWAY as error:
                _log.warning("the answer of run %s waits for the database: %s", call.run_id, error)
                await asyncio.sleep(self._poll_s)

    async def _renew(self) -> None:
        await asyncio.sleep(self._lease_s / 3)
        async with self._store.transaction() as transaction:
            await self._renew_in(transaction)

    async def _renew_in(self, transaction: Transaction) -> None:
        if self._calls:
            await transaction.run(
                "renew_leases",
                engine=self._engine,
                ids=list(self._calls),
                lease_expires_at=transaction.now + timedelta(seconds=self._lease_s),
            )

    async def _prune(self) -> None:
        async with self._store.transaction() as transaction:
            await prune(transaction)
        await asyncio.sleep(PRUNE_EVERY_S)


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel tasks until they are done: before Python 3.12, `wait_for`, which psycopg uses, can lose a cancellation."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.05)
