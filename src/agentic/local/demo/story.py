"""The story, from the first request to the stored email: who does what, in which process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.errors import AgenticError
from agentic.local.crash_points import SENTENCES, CrashPoint
from agentic.local.demo import agent, crash
from agentic.local.demo.asking import as_verdict, read_line
from agentic.local.demo.casting import Casting
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.patience import Patience
from agentic.local.demo.screen import Screen
from agentic.local.demo.settings import REHEARSAL
from agentic.local.demo.stage import Stage
from agentic.local.worker import WorkerProcess

POLL_S = 0.1
PATIENCE_S = 900.0
"""For a model that thinks."""
REHEARSAL_PATIENCE_S = 180.0
FAULTS_EVERY_S = 2.0
DEATH_PATIENCE_S = 20.0
"""For a worker that dies right after the commit that is seen here."""
CANCEL_PATIENCE_S = 20.0
"""For a worker that has the run in hand; cancelled it is in any case."""
_OVER = ("succeeded", "failed", "cancelled")


class TookTooLong(AgenticError):
    """The run did not move on."""


class RunGivenUp(AgenticError):
    """The durable function that leads the run failed for good."""


class NotDecided(AgenticError):
    """The process that was to die deciding ended in another way."""


class NoAnswer(AgenticError):
    """The person left the question open; the run goes on waiting."""


class Story:
    """One telling.

    Args:
        stage: what it runs on.
        options: what the person chose.
        screen: where it is shown.
        casting: whom it is about and who plays the model.
        elapsed: seconds since the demo was started.
    """

    def __init__(
        self, stage: Stage, options: DemoOptions, screen: Screen, casting: Casting, elapsed: Callable[[], float]
    ) -> None:
        self._stage = stage
        self._options = options
        self._screen = screen
        self._target = casting.target
        self._model = casting.model
        self._rehearsed = casting.model == REHEARSAL
        self._patience = Patience()
        self._elapsed = elapsed
        self._shown: set[str] = set()
        self._worker: WorkerProcess | None = None
        self.run_id: UUID | None = None
        self.seconds_to_card: float | None = None
        self.waits_for: str | None = None
        """The approval that is on the screen."""

    async def tell(self) -> Mapping[str, Any]:
        """Run it to its end; the run with everything it can say about itself.

        Raises:
            NoAnswer: standard input ended before the approval was answered.
            ProviderDown: the model provider kept failing.
            WorkerFailed, RunGivenUp, ApiRefused, TookTooLong: something is broken.
        """
        killer = self._stage.killer
        self._worker = await self._start_worker()
        await self._stage.workers.prepare()
        await self._wake_earlier_runs()
        async with AsyncExitStack() as open_:
            if killer is not None:
                await open_.enter_async_context(crash.sweeping(self._stage.platform, self._screen.note))
                if not killer.waits_for_answer:
                    await self._worker.stop()  # the run is not led before the next one knows where to die
            assert self._target is not None, "the story is told of somebody"
            text = agent.task(self._target)
            self._screen.title(f"Task: {text}")
            self.run_id = await self._stage.requester.start(agent.AGENT, text, request_key=f"demo-{uuid4()}")
            if killer is not None and not killer.waits_for_answer:
                self._worker = await self._start_victim(killer)
            approval = await self._until_asked_or_over()
            while approval is not None:
                await self._put_to_a_person(approval)
                approval = await self._until_asked_or_over()
            await self._bury()
        return await self._stage.requester.run(self.run_id)

    async def _wake_earlier_runs(self) -> None:
        """What an earlier demo left behind, such as a call that was approved after it ended, goes on now."""
        sweeper = self._stage.platform.sweeper
        if await sweeper.outbox() + await sweeper.runs():
            self._screen.note("Runs that an earlier demo left behind go on beside this one.")

    # -- following the run -----------------------------------------------------------------------------------------

    async def _until_asked_or_over(self) -> Mapping[str, Any] | None:
        """Show the run until it waits for a person, whose question is returned, or for what the story sees to, or is over."""
        assert self.run_id is not None
        patience_s = REHEARSAL_PATIENCE_S if self._rehearsed else PATIENCE_S
        give_up = time.monotonic() + patience_s
        look_for_faults = time.monotonic() + FAULTS_EVERY_S
        with self._screen.working("working"):
            while time.monotonic() < give_up:
                tree = await self._stage.requester.run(self.run_id)
                self._show_new(tree)
                state = tree["run"]["state"]
                if state in _OVER or self._goes_on_without_a_person(tree):
                    return None
                if state == "parked":
                    waiting = await self._stage.approver.waiting(self.run_id)
                    if waiting:
                        return waiting[0]
                await self._bear_with_the_provider(tree)
                await self._see_to_the_worker()
                if time.monotonic() > look_for_faults:
                    look_for_faults = time.monotonic() + FAULTS_EVERY_S
                    await self._look_for_a_fault()
                await asyncio.sleep(POLL_S)
        raise TookTooLong(
            f"run {self.run_id} has not moved on for {patience_s / 60:.0f} minutes; "
            f"the logs in {self._stage.logs} may say why"
        )

    def _goes_on_without_a_person(self, _tree: Mapping[str, Any]) -> bool:
        """Whether the run waits for something that the story has to see to, and no approval."""
        return False

    async def _bear_with_the_provider(self, tree: Mapping[str, Any]) -> None:
        said = self._patience.look(tree)
        if said is not None:
            self._screen.note(said)
        if not self._patience.over():
            return
        assert self.run_id is not None
        await self._stage.requester.cancel(self.run_id)
        enough = time.monotonic() + CANCEL_PATIENCE_S
        while time.monotonic() < enough:
            if (await self._stage.requester.run(self.run_id))["run"]["state"] in _OVER:
                break
            await asyncio.sleep(POLL_S)
        raise self._patience.verdict(tree, self._model)

    async def _look_for_a_fault(self) -> None:
        assert self.run_id is not None
        fault = await self._stage.fault(self.run_id)
        if fault is not None and self._stage.killer is None:  # after a crash, the sweeps start the function anew
            raise RunGivenUp(f"the function that leads run {self.run_id} was given up after its retries: {fault}")

    def _show_new(self, tree: Mapping[str, Any]) -> None:
        for span in tree["spans"]:
            if span["state"] == "closed" and span["id"] not in self._shown:
                self._shown.add(span["id"])
                self._screen.span(span)

    # -- the worker in hand ----------------------------------------------------------------------------------------

    async def _start_worker(self) -> WorkerProcess:
        worker = await self._stage.next_worker()
        self._screen.done(worker.name.capitalize(), f"process {worker.pid}")
        return worker

    async def _start_victim(self, killer: crash.Killer) -> WorkerProcess:
        """A worker that dies at the point, with another one getting ready to follow it."""
        worker = await self._start_worker()
        await self._stage.workers.prepare()
        assert self.run_id is not None
        killer.aim(self.run_id, worker)
        return worker

    async def _see_to_the_worker(self) -> None:
        worker = self._worker
        if worker is None or worker.running:
            return
        self._mourn(worker)
        self._worker = await self._start_worker()
        self._screen.note("It waits until what the dead worker held has run out.")

    def _mourn(self, worker: WorkerProcess) -> None:
        """Tell that it was killed, if it was this demo's doing.

        Raises:
            WorkerFailed: it ended by itself.
        """
        killer = self._stage.killer
        if killer is None or not killer.aimed:
            raise worker.ended()
        killer.strike()
        self._screen.alarm(f"{worker.name} was killed (SIGKILL) at {killer.point}: {SENTENCES[killer.point]}")

    async def _bury(self) -> None:
        """A worker that dies by the commit that is seen here already is given a moment to be gone."""
        worker, killer = self._worker, self._stage.killer
        if worker is None or killer is None or not killer.aimed:
            return
        if killer.point in (CrashPoint.AFTER_PARK, CrashPoint.AFTER_FINISH):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DEATH_PATIENCE_S):
                    await worker.wait()
        if not worker.running:
            self._mourn(worker)

    @asynccontextmanager
    async def _between_workers(self) -> AsyncIterator[None]:
        """While a person thinks, no process holds the run: the worker that led it has ended, the next one stands by."""
        assert self._worker is not None
        await self._bury()
        await self._worker.stop()
        self._screen.note(f"The run is parked in the database; {self._worker.name} has ended.")
        self._worker = None
        yield
        killer = self._stage.killer
        if killer is None or killer.struck or killer.by_decider or not killer.waits_for_answer:
            self._worker = await self._start_worker()
        else:
            self._worker = await self._start_victim(killer)

    # -- the person ------------------------------------------------------------------------------------------------

    async def _put_to_a_person(self, approval: Mapping[str, Any]) -> None:
        first = self.seconds_to_card is None
        if first:
            self.seconds_to_card = self._elapsed()
        self._screen.approval(approval)
        self.waits_for = str(approval["id"])
        async with self._between_workers() if first else contextlib.nullcontext():
            verdict = await self._verdict()
        await self._decide(str(approval["id"]), verdict)
        self.waits_for = None

    async def _decide(self, approval_id: str, verdict: bool) -> None:
        killer = self._stage.killer
        if verdict and killer is not None and killer.by_decider and not killer.struck:
            status = await self._stage.approve_and_die(approval_id)
            if status >= 0:
                raise NotDecided(f"the process that was to decide approval {approval_id} ended with status {status}")
            killer.strike()
            self._screen.alarm(
                f"The deciding process was killed (SIGKILL) at {killer.point}: {SENTENCES[killer.point]}"
            )
            return
        await self._stage.approver.decide(approval_id, approve=verdict)
        self._screen.done("Approved" if verdict else "Rejected", "by another person, through the API")

    async def _verdict(self) -> bool:
        if self._options.yes:
            self._screen.note("--yes answers.")
            return True
        while True:
            self._screen.ask("Approve this call? [y/n]")
            line = await read_line()
            if line is None:
                raise NoAnswer("standard input ended before the approval was answered")
            verdict = as_verdict(line)
            if verdict is not None:
                return verdict
