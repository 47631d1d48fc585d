"""Many workflows while their worker is killed at random, decisions come when they come and their events get lost or doubled."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from warm_processes import Warm
from workflow_stage import Stage, stage, worker
from workflow_worker import RUN, SLOW, Places, make

pytestmark = pytest.mark.timeout(240)
FLOWS, KILLS, SEED = 10, 5, 20261130


@pytest.mark.guarantee("J1", "J3", "W1", "W4")
async def test_every_workflow_ends_with_its_effects_once_whatever_dies_or_gets_lost(
    database: str, tmp_path: Path, dying: Warm
) -> None:
    chance = random.Random(SEED)
    ledger = tmp_path / "ledger"
    world = Places("nowhere", ledger).world
    async with stage(database, make(Places("nowhere", ledger)), serve=False) as s:
        people = asyncio.create_task(_people(s, chance))
        try:
            for kill in range(KILLS):
                async with worker(s, dying, RUN, SLOW, str(ledger)):
                    for number in range(FLOWS if kill == 0 else 0):
                        await s.send("pair", event_id=f"pair-{number}", text=f"{number}")
                    await asyncio.sleep(chance.uniform(0.4, 1.5))  # when it is killed is the chance that is tried
            async with worker(s, dying, RUN, SLOW, str(ledger)):
                views = await s.ended(FLOWS, timeout_s=150)
        finally:
            people.cancel()
            await asyncio.gather(people, return_exceptions=True)
        runs = await s.runs()
        assert [view.status for view in views] == ["completed"] * FLOWS
        assert Counter(run["node"] for run in runs) == dict.fromkeys(("container", "mail", "note", "last"), FLOWS)
        assert all(run["state"] in ("succeeded", "failed") and run["lease_expires_at"] is None for run in runs)
        assert await s.rows("select from agent.idempotency_keys where state = 'processing'") == []
        answers: Counter[tuple[str, str]] = Counter()
        for view in views:
            assert isinstance(view.result, list)
            answers.update(zip(("mail", "note", "last"), map(str, view.result), strict=True))
        sent = Counter(str(effect.detail["text"]) for effect in world.effects("mail.send"))
        noted = Counter(str(effect.detail["text"]) for effect in world.effects("notes.save"))
        assert set(sent.values()) <= {1}
        assert len(sent) == answers["mail", "done"]
        assert answers["mail", "done"] + answers["mail", "rejected"] == FLOWS
        assert max(noted.values()) <= 2  # once for each of its two nodes
        unknown = len(await s.platform.journal.list_uncertain(s.organization_id))
        assert answers["note", "outcome_unknown"] + answers["last", "outcome_unknown"] == unknown
        done = answers["note", "done"] + answers["last", "done"]
        assert done + unknown == 2 * FLOWS
        assert done <= sum(noted.values()) <= done + unknown
        trees = await s.rows("select count(distinct root_run_id) as trees from agent.runs")
        assert trees == [{"trees": FLOWS}]


async def _people(s: Stage, chance: random.Random) -> None:
    """Decide now and then; of the events that tell of it some come twice, some late, and some never."""
    while True:
        await asyncio.sleep(0.1)
        for approval in await s.platform.approvals.find(s.organization_id, status="pending"):
            if chance.random() < 0.3:
                verdict = "rejected" if chance.random() < 0.25 else "approved"
                await s.answer(approval.id, verdict)
        events, s.bus.events = s.bus.events, []
        for event in events:
            if chance.random() < 0.2:
                continue  # lost: the next look at the row finds the decision
            s.bus.events = [event]
            await s.deliver()
            if chance.random() < 0.3:
                s.bus.events = [event]
                await s.deliver(new_ids=True)
        s.jump(2)  # so that the slices of lost events end in time
