"""A worker that is stopped or killed while the model answers: the run ends right, and no effect happens twice (J8, W4)."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

import pytest

import crash_app
from agentic.local.providers.model import Answer, Hold, ModelServer, Reply, Wire
from agentic.testing import KILLED, EffectLedger, Harness
from core_world import rows
from time_passes import time_passes
from warm_processes import Process, Warm
from wire_stage import call, calls, results, wired

DONE = Answer(text="Done.")
BOUND_S = 40


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A process that leads a run for one segment."""

    process: Process
    said: IO[bytes]

    async def ended(self) -> tuple[int, str]:
        """How it ended, and what it said last."""
        code = await asyncio.to_thread(self.process.wait, BOUND_S)
        self.said.seek(0)
        lines = self.said.read().decode().strip().splitlines()
        return code, lines[-1] if lines else ""


@dataclass(kw_only=True)
class Stage:
    """A run, its provider, and workers in processes of their own."""

    h: Harness
    provider: ModelServer
    world: EffectLedger
    dying: Warm

    @contextmanager
    def worker(self, run_id: UUID, *, lease_s: float = 30) -> Iterator[Worker]:
        """A worker that leads the run for one segment; it is gone when the block ends."""
        environment = {
            **os.environ,
            "AGENTIC_CHILD_DATABASE_URL": self.h.database_url,
            "WIRE_URL": self.provider.url,
            "WIRE_LEASE_S": str(lease_s),
        }
        arguments = (str(self.h.organization_id), str(run_id))
        with (
            tempfile.TemporaryFile() as said,
            open(os.devnull, "rb") as nothing,
            open(2, "wb", closefd=False) as error,
            self.dying.started(
                "wire_app:run", *arguments, environment=environment, streams=(nothing, said, error)
            ) as process,
        ):
            yield Worker(process=process, said=said)

    def texts(self) -> list[str]:
        """The words of every effect."""
        return [effect.detail["text"] for effect in self.world.effects("act.once")]


@asynccontextmanager
async def stage(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *replies: Reply, where: str = "nowhere"
) -> AsyncIterator[Stage]:
    monkeypatch.setenv("CRASH_LEDGER", str(tmp_path / "world"))
    monkeypatch.setenv("CRASH_WHERE", where)
    async with wired(database, *replies, tools=crash_app.TOOLS, claim_grace_s=0.2) as (h, provider):
        yield Stage(h=h, provider=provider, world=EffectLedger(tmp_path / "world"), dying=dying)


@pytest.mark.parametrize("after", [0, 3, 6], ids=["before the first event", "in the arguments", "before its end"])
@pytest.mark.guarantee("J8", "W4")
async def test_a_worker_killed_inside_a_stream_leaves_nothing_of_it_and_the_next_one_asks_again(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    hold = Hold(after=after)
    first = calls(call("act.once", "first words"), wire=Wire(hold=hold))
    second = calls(call("act.once", "other words", id="call_other"))
    async with stage(database, dying, tmp_path, monkeypatch, first, second, DONE) as s:
        run_id = await s.h.start()
        with s.worker(run_id) as worker:
            await asyncio.wait_for(hold.reached.wait(), BOUND_S)
            worker.process.kill()
            assert (await worker.ended())[0] == KILLED
        await time_passes(s.h.platform.database, run_id)
        hold.release.set()
        assert [role for role, _ in await s.h.messages(run_id)] == ["user"]
        settled = await s.h.settle(run_id)
        assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", "Done.", None)
        assert s.texts() == ["other words"]
        asked = s.provider.script.requests
        assert [request.raw for request in asked[:1]] == [request.raw for request in asked[1:2]]
        assert len(asked) == 3


@pytest.mark.guarantee("J8", "W4")
async def test_a_worker_killed_inside_the_stream_after_an_effect_never_repeats_it(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = Hold(after=2)
    replies = [calls(call("act.once", "first words")), Answer(text="Lost words.", wire=Wire(hold=hold)), DONE]
    async with stage(database, dying, tmp_path, monkeypatch, *replies) as s:
        run_id = await s.h.start()
        with s.worker(run_id) as worker:
            await asyncio.wait_for(hold.reached.wait(), BOUND_S)
            worker.process.kill()
            assert (await worker.ended())[0] == KILLED
        await time_passes(s.h.platform.database, run_id)
        hold.release.set()
        assert (await s.h.settle(run_id)).answer == "Done."
        assert s.texts() == ["first words"]
        asked = s.provider.script.requests
        assert asked[1].raw == asked[2].raw


@pytest.mark.guarantee("J8")
async def test_a_worker_killed_in_a_handler_is_followed_by_the_stored_proposal_and_never_by_a_reworded_one(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reworded = calls(call("act.again", "other words", id="call_other"))

    def after_the_result(request: object) -> Answer:
        return DONE if results(s.provider.script.requests[-1]) else reworded

    replies: list[Reply] = [calls(call("act.again", "first words")), after_the_result, after_the_result]
    async with stage(database, dying, tmp_path, monkeypatch, *replies, where="before") as s:
        run_id = await s.h.start()
        with s.worker(run_id) as worker:
            assert (await worker.ended())[0] == KILLED
        await time_passes(s.h.platform.database, run_id)
        assert (await s.h.settle(run_id)).answer == "Done."
        assert [effect.detail["text"] for effect in s.world.effects("act.again")] == ["first words"]
        assert len(s.provider.script.requests) == 2


@pytest.mark.parametrize("after", [0, 3], ids=["before the first event", "in the arguments"])
@pytest.mark.guarantee("J8", "W4")
async def test_a_worker_asked_to_stop_inside_a_stream_stores_the_answer_and_runs_nothing_more(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    hold = Hold(after=after)
    first = calls(call("act.once", "first words"), wire=Wire(hold=hold))
    async with stage(database, dying, tmp_path, monkeypatch, first, DONE) as s:
        run_id = await s.h.start()
        with s.worker(run_id, lease_s=30) as worker:
            await asyncio.wait_for(hold.reached.wait(), BOUND_S)
            os.kill(worker.process.pid, signal.SIGTERM)
            hold.release.set()
            assert await worker.ended() == (0, "released")
        assert [role for role, _ in await s.h.messages(run_id)] == ["user", "assistant"]
        assert s.texts() == []
        [row] = await rows(s.h, "select * from agent.runs where id = %(id)s", id=run_id)
        assert (row["state"], row["lease_expires_at"], row["attempts_without_progress"]) == ("running", None, 0)
        assert (await s.h.settle(run_id)).answer == "Done."
        assert s.texts() == ["first words"]
        assert len(s.provider.script.requests) == 2, "the answer that was paid for is not asked for again"
