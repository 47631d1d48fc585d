"""The story of somebody else's server: what it offers is looked at, classified and approved, and what it says is nobody's order."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.trust import Trust
from agentic.local.demo import crash
from agentic.local.demo.casting import Casting
from agentic.local.demo.mcp import agent
from agentic.local.demo.mcp.names import SERVER
from agentic.local.demo.mcp.pottery import CLASSES
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.screen import Screen
from agentic.local.demo.stage import Stage
from agentic.local.demo.story import POLL_S, Story
from agentic.local.mcp_server.notes import GUEST_BOOK


class McpStory(Story):
    """One telling. A process that dies on the way leaves a server that is added, and a run that goes on with the next demo.

    Attributes:
        tools: how many of the server's are approved.
        fenced: every text of the server's that the model read was labelled as a stranger's.
    """

    def __init__(
        self, stage: Stage, options: DemoOptions, screen: Screen, casting: Casting, elapsed: Callable[[], float]
    ) -> None:
        super().__init__(stage, options, screen, casting, elapsed)
        self.tools = 0
        self.fenced = False

    async def tell(self) -> Mapping[str, Any]:
        """Run it to its end; the run with everything it can say about itself.

        Raises:
            NoAnswer: standard input ended before the approval was answered.
            ProviderDown: the model provider kept failing.
            RemoteFailure: the server does not start.
            WorkerFailed, RunGivenUp, ApiRefused, TookTooLong: something is broken.
        """
        killer = self._stage.killer
        await self._meet_the_server()
        self._worker = await self._start_worker()
        await self._stage.workers.prepare()
        await self._wake_earlier_runs()
        async with AsyncExitStack() as open_:
            if killer is not None:
                await open_.enter_async_context(crash.sweeping(self._stage.platform, self._screen.note))
                await open_.enter_async_context(self._dying_at_the_note(killer))
            self._screen.title(f"Task: {agent.TASK}")
            run_id = self.run_id = await self._stage.requester.start(
                agent.AGENT, agent.TASK, request_key=f"demo-{uuid4()}"
            )
            approval = await self._until_asked_or_over()
            while approval is not None:
                await self._put_to_a_person(approval)
                approval = await self._until_asked_or_over()
            await self._bury()
        await self._show_what_was_read(run_id)
        return await self._stage.requester.run(run_id)

    async def _meet_the_server(self) -> None:
        """Add, verify, activate: nothing of it is offered before a person has seen it."""
        pottery, platform = self._stage.pottery, self._stage.platform
        self._screen.title("A tool server of somebody else")
        new = await pottery.add(platform)
        self._screen.done("Added" if new else "Known from an earlier demo", f"{SERVER}: {pottery.command}")
        with self._screen.working("looking at it"):
            shown = await pottery.verify(platform)
        self._screen.done("Verified", f"it offers {len(shown.offered.tools)} tools; no run has any of them yet")
        for tool in shown.offered.tools:
            said = CLASSES.get(tool.remote_name, shown.server.config.classification)
            self._screen.note(f"{tool.name}: the deployment says {said.side_effects}, {said.risk} risk")
        standing = await pottery.activate(platform, shown)
        self.tools = len(standing.unchanged)
        self._screen.done("Activated", f"{self.tools} tools approved, each as it is declared now")

    @asynccontextmanager
    async def _dying_at_the_note(self, killer: crash.Killer) -> AsyncIterator[None]:
        """While the block runs, the worker that has the run dies as soon as the note is in the notebook and before its answer."""

        async def watch() -> None:
            while not self._stage.pottery.written:  # noqa: ASYNC110 - no event tells of another process's file
                await asyncio.sleep(POLL_S / 4)
            await killer.effect_seen()

        task = asyncio.create_task(watch(), name="watching the notebook")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _show_what_was_read(self, run_id: UUID) -> None:
        """The text that gives orders, as the model got it."""
        platform = self._stage.platform
        words = await platform.run_store.words(self._stage.organization_id, run_id)
        read = [(message.trust, platform.loop.text_of(message)) for message in words if message.role == "tool"]
        orders = [(trust, text) for trust, text in read if json.dumps(GUEST_BOOK[1], ensure_ascii=False)[1:60] in text]
        self.fenced = bool(orders) and all(trust is Trust.EXTERNAL and _labelled(text) for trust, text in orders)
        for _, text in orders:
            self._screen.title("What a visitor wrote for the model, as the model read it:")
            self._screen.note(text)


def _labelled(text: str) -> bool:
    """Whether it stands where a stranger's data stands, with nothing of ours inside."""
    try:
        read = json.loads(text.split("\n", 1)[0])
    except ValueError:
        return False
    return isinstance(read, dict) and "external" in read
