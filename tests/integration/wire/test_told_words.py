"""The words of a model reach a watcher while the provider still sends them, and those of a stream that broke off are superseded."""

import asyncio
from uuid import UUID

from agentic.local.providers.model import Answer, Wire
from agentic.local.providers.model.script import Hold
from agentic.services.runs.events import RunEvent
from agentic.services.runs.following import follow
from agentic.testing import Harness
from wire_stage import wired

LONG = "All of this is said at length. " * 200
PIECE = 2000


async def told(h: Harness, run_id: UUID) -> list[RunEvent]:
    return list((await h.platform.events.events(h.organization_id, run_id, after=0, limit=1000)).events)


def words(events: list[RunEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.kind == "text")


async def _until_told(h: Harness, run_id: UUID) -> str:
    async with asyncio.timeout(30):
        async for page in follow(h.platform.events, h.organization_id, run_id):
            if said := words(list(page.events)):
                return said
    raise AssertionError("the run is over and nothing was told")


async def test_words_are_told_while_the_provider_still_sends_them(database: str) -> None:
    hold = Hold(after=3)
    answer = Answer(text=LONG, wire=Wire(piece_chars=PIECE, hold=hold))
    async with wired(database, answer, tools=[]) as (h, _):
        run_id = await h.start()
        led = asyncio.create_task(h.advance(run_id))
        said = await _until_told(h, run_id)
        assert LONG.startswith(said)
        assert len(said) < len(LONG)
        assert "message.stored" not in [event.kind for event in await told(h, run_id)]
        hold.release.set()
        assert await led == "succeeded"
        events = await told(h, run_id)
        assert words(events) == LONG
        offsets = [(event.data["offset"], len(event.data["text"])) for event in events if event.kind == "text"]
        assert [at for at, _ in offsets[1:]] == [at + length for at, length in offsets[:-1]]
        kinds = [event.kind for event in events]
        assert kinds[-2:] == ["message.stored", "run.succeeded"]
        assert "text.reset" not in kinds


async def test_words_of_a_stream_that_broke_off_are_superseded_by_the_next_answer(database: str) -> None:
    hold = Hold(after=3)
    broken = Answer(text=LONG, wire=Wire(piece_chars=PIECE, hold=hold, cut_after=3))
    async with wired(database, broken, Answer(text="Short."), tools=[]) as (h, _):
        run_id = await h.start()
        led = asyncio.create_task(h.advance(run_id))
        await _until_told(h, run_id)
        hold.release.set()
        assert await led == "released"
        events = await told(h, run_id)
        assert [event.kind for event in events[-2:]] == ["text.reset", "run.released"]
        assert (await h.settle(run_id)).answer == "Short."
        after = (await told(h, run_id))[len(events) :]
        assert words(after) == "Short."
        assert [event.kind for event in after] == ["segment.started", "text", "message.stored", "run.succeeded"]
