"""The crash: durations short enough to watch, a worker that dies at a point, and sweeps that do not wait for cron.

In production a lease runs 60 seconds and the sweeps run every minute; what happens is the same, later.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from agentic.bootstrap import Platform
from agentic.local.crash_points import AFTER_ANSWER, ArmedByFile, CrashPoint
from agentic.local.demo.email_tool import RUN_ID
from agentic.local.providers.mail import Message
from agentic.local.worker import WorkerProcess
from agentic.runtime.agent.sweeps import Sweeps
from agentic.runtime.agent.timings import Timings

TIMINGS = Timings(lease_s=3, renew_s=1, slice_s=30, model_retry_s=1, fault_retry_s=1)
CLAIM_GRACE_S = 1.0
EMAIL_TIMEOUT_S = 5.0
SWEEP_EVERY_S = 1.0
_log = logging.getLogger(__name__)


class Killer:
    """Sees to it that one process dies at the point, once, and knows that death from any other.

    Args:
        point: where.
        armed: tells the workers, which die by themselves at most points.
    """

    def __init__(self, point: CrashPoint, armed: ArmedByFile) -> None:
        self.point = point
        self.struck = False
        """Whether the process is dead."""
        self._armed = armed
        self._run_id: UUID | None = None
        self._victim: WorkerProcess | None = None
        armed.disarm()  # a demo that was killed may have left it armed

    @property
    def waits_for_answer(self) -> bool:
        """Whether the point comes after the person's answer."""
        return self.point in AFTER_ANSWER

    @property
    def by_decider(self) -> bool:
        """Whether it is not a worker that dies, but the process that takes the person's answer."""
        return self.point is CrashPoint.AFTER_DECISION

    @property
    def aimed(self) -> bool:
        """Whether a worker is to die that has not yet."""
        return self._run_id is not None and not self.struck

    def aim(self, run_id: UUID, victim: WorkerProcess) -> None:
        """From now on, whoever leads this run dies at the point."""
        self._run_id, self._victim = run_id, victim
        self._armed.arm(run_id)

    def strike(self) -> None:
        """It is dead; nobody else shall be."""
        self.struck = True
        self.spare()

    def spare(self) -> None:
        """Nobody dies any more."""
        self._victim = None
        self._armed.disarm()

    async def accepted(self, message: Message) -> None:
        """Called by the mail provider right after it stored a message: what it does not get to answer to, dies here."""
        mine = message.content.metadata.get(RUN_ID) == str(self._run_id)
        if mine:
            await self.effect_seen()

    async def effect_seen(self) -> None:
        """Called when the effect is seen where it arrives, and its caller has no answer."""
        if self.point is CrashPoint.EFFECT_ACCEPTED and self.aimed and self._victim is not None:
            await self._victim.kill()


@asynccontextmanager
async def sweeping(platform: Platform, said: Callable[[str], None]) -> AsyncIterator[None]:
    """Sweep every second while the block runs, in this process, as the durable functions do every minute."""
    sweeps = Sweeps(
        runs=platform.run_store,
        approvals=platform.approvals,
        journal=platform.journal,
        outbox=platform.outbox,
        quiet_s=SWEEP_EVERY_S,
    )

    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            try:
                await sweeps.outbox()
                await sweeps.runs()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next sweep reads the rows again
                _log.warning("a sweep failed and is tried again (%s: %s)", type(error).__name__, error)

    said(
        f"For this show the run lease is {TIMINGS.lease_s:g} s (production: {Timings().lease_s:g} s), a send has "
        f"{EMAIL_TIMEOUT_S:g} s, and this process sweeps every second (production: every minute)."
    )
    task = asyncio.create_task(sweep(), name="sweeps")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
