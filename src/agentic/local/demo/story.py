"""The story, from the first request to the stored email: who does what, in which process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.errors import AgenticError
from agentic.local.demo import agent, crash
from agentic.local.demo.asking import as_verdict, read_line
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.screen import Screen
from agentic.local.demo.settings import Target
from agentic.local.demo.stage import Stage
from agentic.local.worker import WorkerProcess

POLL_S = 0.1
PATIENCE_S = 900.0
"""For a model that thinks; a rehearsal is done in seconds."""
_OVER = ("succeeded", "failed", "cancelled")
Tree = Mapping[str, Any]


class TookTooLong(AgenticError):
    """The run did not move on."""


class LeftWaiting(AgenticError):
    """The person gave no answer; the run goes on waiting."""


class Story:
    """One telling.

    Args:
        stage: what it runs on.
        options: what the person chose.
        screen: where it is shown.
        target: whom it is about.
        elapsed: seconds since the demo was started.
    """

    def __init__(
        self, stage: Stage, options: DemoOptions, screen: Screen, target: Target, elapsed: Callable[[], float]
    ) -> None:
        self._stage = stage
        self._options = options
        self._screen = screen
        self._target = target
        self._elapsed = elapsed
        self._shown: set[str] = set()
        self._workers = 0
        self._worker: WorkerProcess | None = None
        self.run_id: UUID | None = None
        self.seconds_to_card: float | None = None
        self.waits_for: str | None = None
        """The approval on the screen."""

    async def tell(self) -> Tree:
        """Run it to its end; the run with everything it can say about itself.

        Raises:
            LeftWaiting: nobody answered the approval.
            WorkerFailed, ApiRefused, TookTooLong: something is broken.
        """
        async with AsyncExitStack() as open_:
            open_.push_async_callback(self._stop_worker)
            self._worker = await self._start_worker()
            await self._wake_earlier_runs()
            self._screen.title(f"Task: {agent.task(self._target)}")
            self.run_id = await self._stage.requester.start(
                agent.AGENT, agent.task(self._target), request_key=f"demo-{uuid4()}"
            )
            self._stage.killer.run_id = self.run_id
            approval = await self._until_asked_or_over()
            if approval is not None and self._options.crash:
                await open_.enter_async_context(crash.sweeping(self._stage.platform, self._screen.note))
            while approval is not None:
                if self.seconds_to_card is None:
                    self.seconds_to_card = self._elapsed()
                    async with self._another_worker():
                        verdict = await self._verdict(approval)
                else:
                    verdict = await self._verdict(approval)
                await self._stage.approver.decide(str(approval["id"]), approve=verdict)
                self.waits_for = None
                self._screen.done("Approved" if verdict else "Rejected", "by another person, through the API")
                approval = await self._until_asked_or_over()
            return await self._stage.requester.run(self.run_id)

    async def _wake_earlier_runs(self) -> None:
        """What an earlier demo left behind, such as a call that was approved after it ended, goes on now."""
        sweeper = self._stage.platform.sweeper
        woken = await sweeper.outbox() + await sweeper.runs()
        if woken:
            self._screen.note("Runs that an earlier demo left behind go on beside this one.")

    # -- following the run ----------------------------------------------------------------------------------------------

    async def _until_asked_or_over(self) -> Mapping[str, Any] | None:
        """Show the run until it waits for a person, whose question is returned, or is over."""
        assert self.run_id is not None
        give_up = time.monotonic() + PATIENCE_S
        with self._screen.working("working"):
            while time.monotonic() < give_up:
                tree = await self._stage.requester.run(self.run_id)
                self._show_new(tree)
                state = tree["run"]["state"]
                if state in _OVER:
                    return None
                if state == "parked":
                    waiting = await self._stage.approver.waiting(self.run_id)
                    if waiting:
                        return waiting[0]
                await self._see_to_the_worker()
                await asyncio.sleep(POLL_S)
        raise TookTooLong(
            f"run {self.run_id} has not moved on for {PATIENCE_S / 60:.0f} minutes; the logs in {self._stage.logs} may say why"
        )

    def _show_new(self, tree: Tree) -> None:
        for span in tree["spans"]:
            if span["state"] == "closed" and span["id"] not in self._shown:
                self._shown.add(span["id"])
                self._screen.span(span)

    # -- the worker in hand -----------------------------------------------------------------------------------------------

    async def _start_worker(self) -> WorkerProcess:
        self._workers += 1
        worker = await self._stage.worker(f"worker {self._workers}")
        self._screen.done(worker.name.capitalize(), f"process {worker.pid}")
        return worker

    async def _see_to_the_worker(self) -> None:
        worker = self._worker
        if worker is None or worker.running:
            return
        if worker is not self._stage.killer.victim:
            raise worker.ended()
        self._stage.killer.victim = None
        self._screen.alarm(
            f"{worker.name} was killed (SIGKILL): the provider has accepted the email, and nobody heard its answer"
        )
        self._worker = await self._start_worker()
        self._screen.note("It waits until the dead worker's lease and claim have run out.")

    @asynccontextmanager
    async def _another_worker(self) -> AsyncIterator[None]:
        """While a person thinks, the parked run is in no process: the worker that led it ends, another one starts."""
        first, self._worker = self._worker, None
        assert first is not None
        await first.stop()
        self._screen.note(f"The run is parked in the database; {first.name} has ended.")
        starting = asyncio.create_task(self._start_worker(), name="next worker")
        try:
            yield
            self._worker = await starting
        except BaseException:
            await _abandon(starting)
            raise
        if self._options.crash:
            self._stage.killer.victim = self._worker

    async def _stop_worker(self) -> None:
        self._stage.killer.victim = None
        if self._worker is not None:
            await self._worker.stop()

    # -- the person ---------------------------------------------------------------------------------------------------------

    async def _verdict(self, approval: Mapping[str, Any]) -> bool:
        self._screen.approval(approval)
        self.waits_for = str(approval["id"])
        if self._options.yes:
            self._screen.note("--yes answers.")
            return True
        while True:
            self._screen.ask("Approve this call? [y/n]")
            line = await read_line()
            if line is None:
                raise LeftWaiting("nobody answered")
            verdict = as_verdict(line)
            if verdict is not None:
                return verdict


async def _abandon(starting: "asyncio.Task[WorkerProcess]") -> None:
    """Let a worker that nobody needs any more not come up, or go."""
    if not starting.done():
        starting.cancel()
    with contextlib.suppress(asyncio.CancelledError, AgenticError):
        await (await starting).stop()
