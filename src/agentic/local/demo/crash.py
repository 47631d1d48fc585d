"""The crash: durations short enough to watch, a worker that dies at the worst moment, and sweeps that do not wait for cron.

In production a lease runs 60 seconds and the sweeps run every minute; what happens is the same, later.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from agentic.bootstrap import Platform
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
    """Kills the worker in hand once, when the provider has accepted an email of the run and not yet answered."""

    def __init__(self) -> None:
        self.run_id: UUID | None = None
        self.victim: WorkerProcess | None = None
        self.struck = asyncio.Event()

    async def accepted(self, message: Message) -> None:
        """Called by the mail provider right after it stored a message."""
        if self.victim is None or self.struck.is_set() or message.content.metadata.get(RUN_ID) != str(self.run_id):
            return
        await self.victim.kill()
        self.struck.set()


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
