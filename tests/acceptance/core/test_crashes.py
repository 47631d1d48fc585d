"""kill -9 at the points of the pipeline: what the next process finds, does, and does not do again (ADR 0009)."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from uuid import UUID

import pytest

import crash_app
from agentic.testing import KILLED, EffectLedger, Harness, Settled, advance_in_child, harness
from time_passes import time_passes
from warm_processes import Warm

LIMIT_S = 40


class Stage:
    """A run whose first process dies, and the world it acted on."""

    def __init__(self, made: Harness, ledger: EffectLedger, environment: Mapping[str, str], dying: Warm) -> None:
        self.h = made
        self.world = ledger
        self.environment = environment
        self.dying = dying

    async def child(self, run_id: UUID) -> int:
        """Leads the run for one segment, as ``advance_in_child`` does."""
        lease_s, claim_grace_s = 20, 1
        arguments = ("crash_app:make", self.h.organization_id, run_id, lease_s, claim_grace_s)
        return await self.process("agentic.testing.child_process:main", *arguments)

    async def process(self, call: str, *arguments: object) -> int:
        """How a process ends that is told which database it is about."""
        environment = {**os.environ, **self.environment, "AGENTIC_CHILD_DATABASE_URL": self.h.database_url}
        with self.dying.started(call, *map(str, arguments), environment=environment) as process:
            return await asyncio.to_thread(process.wait, LIMIT_S)

    async def killed(self) -> UUID:
        """A run whose first leader was killed."""
        run_id = await self.h.start()
        assert await self.child(run_id) == KILLED
        await time_passes(self.h.platform.database, run_id)
        return run_id

    async def rest(self, run_id: UUID) -> Settled:
        return await self.h.settle(run_id, timeout_s=20)

    async def spans(self, run_id: UUID, tool: str) -> list[tuple[str, str | None]]:
        return [(span["status"], span["code"]) for span in await self.h.calls(run_id, tool)]


@contextlib.asynccontextmanager
async def stage(
    database: str,
    dying: Warm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    tool: str,
    where: str,
    read: bool = False,
) -> AsyncIterator[Stage]:
    environment = {
        "CRASH_TOOL": tool,
        "CRASH_WHERE": where,
        "CRASH_LEDGER": str(tmp_path / "world"),
        "CRASH_READ": "1" if read else "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def model() -> object:
        return crash_app.make().models["scripted"]()

    async with harness(tools=crash_app.TOOLS, script=model, database_url=database, claim_grace_s=0.2) as h:
        yield Stage(h, EffectLedger(tmp_path / "world"), environment, dying)


@pytest.mark.guarantee("J3")
async def test_an_idempotent_call_whose_worker_died_after_the_effect_runs_again(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.again", where="after") as s:
        run_id = await s.killed()
        assert (await s.rest(run_id)).state == "succeeded"
        assert s.world.count("act.again") == 2
        assert await s.spans(run_id, "act.again") == [("lost", None), ("ok", None)]


@pytest.mark.guarantee("J3", "J7")
async def test_a_conditional_call_is_replayed_under_the_same_key_and_the_vendor_has_one_effect(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.keyed", where="after") as s:
        run_id = await s.killed()
        assert (await s.rest(run_id)).state == "succeeded"
        [effect] = s.world.effects("act.keyed")
        assert effect.key == effect.detail["key"]
        assert effect.key is not None
        assert await s.spans(run_id, "act.keyed") == [("lost", None), ("ok", None)]
        assert [e["kind"] for e in (await s.h.tree(run_id)).effects] == ["completed"]


@pytest.mark.guarantee("J3")
async def test_a_conditional_call_whose_key_the_vendor_has_forgotten_is_not_replayed(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.forgotten", where="after") as s:
        run_id = await s.killed()
        settled = await s.rest(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "outcome_unknown: act.forgotten")
        assert s.world.count("act.forgotten") == 1
        assert len(await s.h.uncertain(run_id)) == 1


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("where", ["after", "before"])
async def test_a_call_that_must_not_repeat_is_uncertain_once_its_watermark_was_set(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The watermark is set with the claim, so even a death before the effect leaves the question to a person."""
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.once", where=where) as s:
        run_id = await s.killed()
        settled = await s.rest(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "outcome_unknown: act.once")
        assert s.world.count("act.once") == (1 if where == "after" else 0)
        assert await s.spans(run_id, "act.once") == [("unknown", "outcome_unknown")]
        [call] = await s.h.uncertain(run_id)
        assert call.tool == "act.once"
        spans = (await s.h.tree(run_id)).spans
        assert "lost" in {span["status"] for span in spans if span["kind"] == "segment"}, (
            "the dead segment is in the tree"
        )
        assert {span["parent_id"] for span in spans if span["parent_id"]} <= {span["id"] for span in spans}
        answers = [text for role, text in await s.h.messages(run_id) if role == "tool"]
        assert len(answers) == 1
        assert "may have happened" in answers[0]


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize(
    ("where", "effects", "spans"),
    [
        ("before", 1, [("lost", None), ("ok", None)]),
        ("marked", 0, [("unknown", "outcome_unknown")]),
        ("after", 1, [("unknown", "outcome_unknown")]),
    ],
)
async def test_a_watermark_at_the_transport_lets_a_call_run_again_that_died_before_it(
    database: str,
    dying: Warm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    effects: int,
    spans: list[tuple[str, str | None]],
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.marked", where=where) as s:
        run_id = await s.killed()
        assert (await s.rest(run_id)).state == "succeeded"
        assert s.world.count("act.marked") == effects
        assert await s.spans(run_id, "act.marked") == spans


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("where", ["after", "before"])
async def test_a_probe_answers_for_a_call_whose_worker_died(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.probed", where=where) as s:
        run_id = await s.killed()
        settled = await s.rest(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert s.world.count("act.probed") == 1
        assert await s.h.uncertain(run_id) == []
        assert all(span["state"] == "closed" for span in (await s.h.tree(run_id)).spans)


@pytest.mark.guarantee("J8")
@pytest.mark.parametrize("where", ["look", "request 0", "request 1"])
async def test_a_process_that_dies_beside_the_model_never_lets_a_reworded_proposal_have_an_effect(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """In the inline read of a turn whose write is not run yet, or while the model is asked, before and after the write."""
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.once", where=where, read=True) as s:
        run_id = await s.killed()
        before = await s.h.platform.database.all("select body from agent.run_messages where role = 'assistant'", {})
        assert (await s.rest(run_id)).state == "succeeded"
        [effect] = s.world.effects("act.once")
        assistants = [
            bytes(row["body"]).decode()
            for row in await s.h.platform.database.all(
                "select body from agent.run_messages where role = 'assistant' order by seq", {}
            )
        ]
        assert [bytes(row["body"]).decode() for row in before] == assistants[: len(before)]
        assert len(assistants) == 2
        assert effect.detail["text"] in assistants[0]


@pytest.mark.guarantee("J3", "J1")
async def test_a_process_that_dies_between_the_answer_s_commit_and_its_message_replays_the_answer(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.once", where="nowhere") as s:
        run_id = await s.h.start()
        assert await s.process("crash_after_commit:run", s.h.organization_id, run_id) == KILLED
        await time_passes(s.h.platform.database, run_id)
        assert s.world.count("act.once") == 1
        assert [role for role, _ in await s.h.messages(run_id)] == ["user", "assistant"]
        settled = await s.rest(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert s.world.count("act.once") == 1
        assert await s.spans(run_id, "act.once") == [("ok", None), ("ok", None)]
        assert (await s.h.calls(run_id, "act.once"))[1]["attributes"]["replayed"] is True


@pytest.mark.guarantee("J1", "J2")
async def test_two_processes_that_lead_the_same_run_at_once_have_one_effect(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, dying, tmp_path, monkeypatch, tool="act.once", where="nowhere") as s:
        run_id = await s.h.start()

        def lead() -> int:
            return advance_in_child(
                "crash_app:make", database, s.h.organization_id, run_id, environment=s.environment, lease_s=20
            )

        assert list(await asyncio.gather(asyncio.to_thread(lead), asyncio.to_thread(lead))) == [0, 0]
        assert (await s.rest(run_id)).state == "succeeded"
        assert s.world.count("act.once") == 1
        fences = await s.h.platform.database.all("select fence from agent.runs", {})
        assert [row["fence"] for row in fences] == [1]
