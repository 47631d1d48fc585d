"""The story of work that a provider finishes later: submitted, waited for by nobody, reported, settled once, gone on with."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.errors import AgenticError
from agentic.local.demo.casting import Casting
from agentic.local.demo.enrichment import agent
from agentic.local.demo.enrichment.vendor import Booked
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.screen import Screen
from agentic.local.demo.stage import Stage
from agentic.local.demo.story import POLL_S, Story, TookTooLong

SETTLE_PATIENCE_S = 60.0
_ON_A_JOB = "provider_job"


class NotReported(AgenticError):
    """A callback was delivered, and the job it was for has not ended."""


class EnrichmentStory(Story):
    """One telling. A process that dies on the way leaves a parked run and a job that is asked about after its window.

    Attributes:
        callbacks: reports that the webhook route took.
        found: addresses the provider reported.
        parked: the run has waited for its job.
        booked: what its jobs came to, once it is told.
    """

    def __init__(
        self, stage: Stage, options: DemoOptions, screen: Screen, casting: Casting, elapsed: Callable[[], float]
    ) -> None:
        super().__init__(stage, options, screen, casting, elapsed)
        self._people = casting.people
        self.callbacks = 0
        self.found = 0
        self.parked = False
        self.booked = Booked(jobs=(), lines=())

    async def tell(self) -> Mapping[str, Any]:
        """Run it to its end; the run with everything it can say about itself.

        Raises:
            NoAnswer: standard input ended before the approval was answered.
            ProviderDown: the model provider kept failing.
            NotReported: a callback did not end its job.
            WorkerFailed, RunGivenUp, ApiRefused, TookTooLong: something is broken.
        """
        self._worker = await self._start_worker()
        await self._stage.workers.prepare()
        await self._wake_earlier_runs()
        text = agent.task(self._people)
        self._screen.title(f"Task: {text}")
        run_id = self.run_id = await self._stage.requester.start(agent.AGENT, text, request_key=f"demo-{uuid4()}")
        approval = await self._until_asked_or_over()
        tree = await self._stage.requester.run(run_id)
        while approval is not None or self._goes_on_without_a_person(tree):
            if approval is not None:
                await self._put_to_a_person(approval)
            else:
                await self._until_reported(run_id)
            approval = await self._until_asked_or_over()
            tree = await self._stage.requester.run(run_id)
        self.booked = await self._until_settled(run_id)
        return await self._stage.requester.run(run_id)

    def _goes_on_without_a_person(self, tree: Mapping[str, Any]) -> bool:
        run = tree["run"]
        return run["state"] == "parked" and run["parked_on"] == _ON_A_JOB and bool(self._stage.vendor.unfinished)

    async def _until_reported(self, run_id: UUID) -> None:
        """While the provider works, no process holds the run; then its callbacks come, each of them twice.

        Raises:
            NotReported: a job of the run has not ended by its callback.
        """
        assert self._worker is not None
        self.parked = True
        await self._worker.stop()
        self._screen.note(f"The run is parked on its job: {self._worker.name} has ended, and no process leads it.")
        self._worker = None
        await self._stage.workers.prepare()
        self._worker = await self._start_worker()
        for batch in self._stage.vendor.unfinished:
            self.found += self._stage.vendor.finish(batch)
            for again in (False, True):
                if not await self._stage.vendor.deliver(batch):
                    self._screen.alarm("The webhook route did not take the callback")
                    continue
                self.callbacks += 1
                what = "The same callback once more" if again else "Signed callback"
                self._screen.done(what, "taken, and changes nothing" if again else f"taken at {batch.webhook_url}")

        for job in (await self._stage.vendor.booked(run_id)).jobs:
            if not job.state.terminal:
                raise NotReported(
                    f"the callback of job {job.id} changed nothing, it is still {job.state}; 'agentic jobs drops' says why"
                )

    async def _until_settled(self, run_id: UUID) -> Booked:
        """What the jobs came to, once each that has ended is paid.

        Raises:
            TookTooLong: one is not.
        """
        give_up = time.monotonic() + SETTLE_PATIENCE_S
        with self._screen.working("settling"):
            while time.monotonic() < give_up:
                booked = await self._stage.vendor.booked(run_id)
                if booked.settled:
                    for job in booked.jobs:
                        lines = [line for line in booked.lines if line.id == job.usage_id]
                        told = ", ".join(f"{line.quantity} {line.unit} for {line.cost} USD" for line in lines)
                        self._screen.done(f"Job {job.state}, settled once", told)
                    return booked
                await asyncio.sleep(POLL_S)
        raise TookTooLong(
            f"a job of run {run_id} is not paid after {SETTLE_PATIENCE_S:.0f} s; 'agentic jobs list --unsettled' names it, "
            f"and the logs in {self._stage.logs} may say why"
        )
