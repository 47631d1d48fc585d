"""A worker that is killed anywhere in a node costs time: another one goes on, and the effect is there once."""

from pathlib import Path

import pytest

from warm_processes import Warm
from workflow_stage import stage, worker
from workflow_worker import POINTS, RUN, Places, make

pytestmark = pytest.mark.timeout(120)
BEFORE_THE_DECISION = ("before take 1", "after take 1", "before park 1", "after park 1")
UNASKED = tuple(point for point in POINTS if "park" not in point and "take 2" not in point)
UNKNOWN = ("after claim_body 1", "before the effect", "after the effect", "before end_complete 1")
"""Here a write that must not run twice may have had its effect, for all that anybody can know."""


@pytest.mark.guarantee("J1", "J3", "A2")
@pytest.mark.parametrize("point", POINTS)
async def test_a_send_that_asks_goes_out_once_whenever_its_worker_is_killed(
    database: str, tmp_path: Path, dying: Warm, point: str
) -> None:
    ledger = tmp_path / "ledger"
    places = Places("nowhere", ledger)
    async with stage(database, make(places), serve=False) as s:
        async with worker(s, dying, RUN, point, str(ledger)) as first:
            await s.send("story", tool="mail.send")
            if point not in BEFORE_THE_DECISION:
                await s.asked()
                assert await s.decide() == 1
                await s.deliver()
            assert await first.wait() < 0
        async with worker(s, dying, RUN, point, str(ledger)):
            if point in BEFORE_THE_DECISION:
                await s.asked()
                assert await s.decide() == 1
                await s.deliver()
            (run,) = await s.ended()
        assert run.result == "done"
        assert places.world.count("mail.send") == 1
        assert await s.states() == {"container": "succeeded", "call": "succeeded"}
        assert await s.rows("select 1 from agent.idempotency_keys where state <> 'completed'") == []


@pytest.mark.guarantee("J1", "J3")
@pytest.mark.parametrize("point", UNASKED)
async def test_a_write_that_must_not_run_twice_is_there_once_or_handed_to_an_operator(
    database: str, tmp_path: Path, dying: Warm, point: str
) -> None:
    ledger = tmp_path / "ledger"
    places = Places("nowhere", ledger)
    async with stage(database, make(places), serve=False) as s:
        async with worker(s, dying, RUN, point, str(ledger)) as first:
            await s.send("story", tool="notes.save")
            assert await first.wait() < 0
        async with worker(s, dying, RUN, point, str(ledger)):
            (run,) = await s.ended()
        assert run.result == ("outcome_unknown" if point in UNKNOWN else "done")
        assert places.world.count("notes.save") == (0 if point in UNKNOWN[:2] else 1)
        uncertain = await s.platform.journal.list_uncertain(s.organization_id)
        assert len(uncertain) == (1 if point in UNKNOWN else 0)
