"""A model that says nothing holds nobody: a cancelled run ends at the next renewal, a lost lease is let go at once (J5, W4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from agentic.local.providers.model import Answer, Hold, Wire
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.testing import Harness, harness
from core_world import Done, Words, rows
from wire_stage import FORMATS, wired

BOUND_S = 20
QUICK = Timings(lease_s=10, renew_s=0.1)


class Silence:
    """Reached when somebody waits in it; never ends by itself unless released."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def keep(self) -> None:
        self.reached.set()
        await self.released.wait()


def waiting(silence: Silence, number: int) -> Callable[[int], Awaitable[None]]:
    """A model that says nothing when it is asked for the ``number``th time."""

    async def on_request(asked: int) -> None:
        if asked == number:
            await silence.keep()

    return on_request


@asynccontextmanager
async def led(h: Harness, silence: Silence) -> AsyncIterator[tuple[UUID, asyncio.Task[str]]]:
    """A run that is led, and has come to the silence."""
    run_id = await h.start()
    leading = asyncio.create_task(h.advance(run_id))
    try:
        async with asyncio.timeout(BOUND_S):
            await silence.reached.wait()
        yield run_id, leading
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


@pytest.mark.guarantee("W4")
async def test_a_cancelled_run_leaves_a_silent_model_and_its_attempt_is_recorded(database: str) -> None:
    silence = Silence()

    def model() -> object:
        return ScriptedModel(script=[Say("never")], on_request=waiting(silence, 0))

    async with (
        harness(tools=[], script=model, database_url=database, timings=QUICK) as h,
        led(h, silence) as (run_id, leading),
    ):
        await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        assert await asyncio.wait_for(leading, BOUND_S) == "cancelled"
        tree = await h.tree(run_id)
        assert (tree.run["state"], tree.run["answer"]) == ("cancelled", None)
        assert [span["status"] for span in tree.spans if span["kind"] == "llm"] == ["error"]
        assert [role for role, _ in await h.messages(run_id)] == ["user"]


@pytest.mark.parametrize("after", [0, 2], ids=["before the first event", "after a word"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.guarantee("W4")
async def test_a_cancelled_run_leaves_a_stream_that_has_fallen_silent(database: str, format: str, after: int) -> None:
    hold = Hold(after=after)
    answer = Answer(text="A few words.", wire=Wire(hold=hold))
    async with wired(database, answer, tools=[], model=FORMATS[format], timings=QUICK) as (h, _):
        run_id = await h.start()
        leading = asyncio.create_task(h.advance(run_id))
        await asyncio.wait_for(hold.reached.wait(), BOUND_S)
        await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        assert await asyncio.wait_for(leading, BOUND_S) == "cancelled"
        assert [role for role, _ in await h.messages(run_id)] == ["user"]
        hold.release.set()


@pytest.mark.guarantee("J5")
async def test_a_worker_that_lost_its_lease_leaves_a_silent_model_and_writes_nothing(database: str) -> None:
    silence = Silence()

    def model() -> object:
        return ScriptedModel(script=[Say("Done.")], on_request=waiting(silence, 0))

    async with (
        harness(tools=[], script=model, database_url=database, timings=QUICK) as h,
        led(h, silence) as (run_id, leading),
    ):
        await h.platform.database.count(
            "update agent.runs set lease_expires_at = clock_timestamp() where id = %(id)s", {"id": run_id}
        )
        assert await asyncio.wait_for(leading, BOUND_S) == "lost"
        [row] = await rows(h, "select state, fence from agent.runs where id = %(id)s", id=run_id)
        assert (row["state"], row["fence"]) == ("running", 1)
        assert (await h.settle(run_id)).answer == "Done."


@pytest.mark.guarantee("W4", "J3")
async def test_a_call_in_flight_when_its_run_is_cancelled_settles_and_is_recorded(database: str) -> None:
    silence = Silence()

    @internal_tool("act.slow", "Acts.", side_effects="write", risk="low", repeatable=False)
    async def slow(ctx: CallContext, args: Words) -> Done:
        await silence.keep()
        return Done(id="1")

    script: list[Turn] = [Calls([Call("act.slow", {"text": "hello"})]), Say("never")]
    async with (
        harness(tools=[slow], script=script, database_url=database, timings=QUICK) as h,
        led(h, silence) as (run_id, leading),
    ):
        await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        await _renewed_after_cancel(h, run_id)
        silence.released.set()
        assert await asyncio.wait_for(leading, BOUND_S) == "cancelled"
        assert [effect["kind"] for effect in (await h.tree(run_id)).effects] == ["completed"]


async def _renewed_after_cancel(h: Harness, run_id: UUID) -> None:
    """Until the leader's keeper has heard of it twice over."""
    seen: set[object] = set()
    async with asyncio.timeout(BOUND_S):
        while len(seen) < 3:
            [row] = await rows(h, "select lease_expires_at from agent.runs where id = %(id)s", id=run_id)
            seen.add(row["lease_expires_at"])
            await asyncio.sleep(0.02)
