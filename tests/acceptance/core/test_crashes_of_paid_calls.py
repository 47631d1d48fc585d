"""kill -9 between the hold and its end: no money is lost, and none is counted twice (M1, ADR 0029)."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

import crash_app
from agentic.testing import KILLED, EffectLedger, Harness, harness
from money import holds, leases_end, lines, spent, states
from time_passes import time_passes
from warm_processes import Warm

LIMIT_S = 60


@contextlib.asynccontextmanager
async def stage(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tool: str, where: str
) -> AsyncIterator[tuple[Harness, EffectLedger, dict[str, str]]]:
    environment = {
        "CRASH_TOOL": tool,
        "CRASH_WHERE": where,
        "CRASH_LEDGER": str(tmp_path / "world"),
        "CRASH_READ": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def model() -> object:
        return crash_app.make().models["scripted"]()

    async with harness(tools=crash_app.TOOLS, script=model, database_url=database, claim_grace_s=0.2) as h:
        yield h, EffectLedger(tmp_path / "world"), environment


async def dies(dying: Warm, h: Harness, environment: dict[str, str], call: str, *arguments: object) -> None:
    """Leads a run in a process, which does not survive it."""
    variables = {**os.environ, **environment, "AGENTIC_CHILD_DATABASE_URL": h.database_url}
    with dying.started(call, *map(str, arguments), environment=variables) as process:
        assert await asyncio.to_thread(process.wait, LIMIT_S) == KILLED


async def killed(dying: Warm, h: Harness, environment: dict[str, str]) -> UUID:
    """A run whose first leader died in its paid call; its money is held."""
    run_id = await h.start()
    lease_s, claim_grace_s = 20, 1
    arguments = ("crash_app:make", h.organization_id, run_id, lease_s, claim_grace_s)
    await dies(dying, h, environment, "agentic.testing.child_process:main", *arguments)
    await time_passes(h.platform.database, run_id)
    assert await states(h, run_id) == ["held"]
    assert await lines(h, run_id) == []
    return run_id


@pytest.mark.guarantee("M1", "J3")
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_paid_call_that_is_taken_over_keeps_its_hold_and_is_counted_once(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with stage(database, tmp_path, monkeypatch, tool="paid.keyed", where=where) as (h, _, environment):
        run_id = await killed(dying, h, environment)
        assert (await h.settle(run_id, timeout_s=20)).state == "succeeded"
        assert await states(h, run_id) == ["settled"]
        [line] = await lines(h, run_id)
        assert (line["cost"], line["estimated"]) == (Decimal("1.00"), False)


@pytest.mark.guarantee("M1", "J3")
async def test_a_paid_call_of_unknown_outcome_keeps_its_hold_until_an_operator_answers(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, tmp_path, monkeypatch, tool="paid.once", where="after") as (h, _, environment):
        run_id = await killed(dying, h, environment)
        assert (await h.settle(run_id, timeout_s=20)).partial_reason == "outcome_unknown: paid.once"
        assert (await states(h, run_id), await lines(h, run_id)) == (["held"], [])
        [call] = await h.uncertain(run_id)
        await h.platform.journal.settle(
            h.organization_id, call.ref, happened=True, user_id=h.user_id, evidence="it is on the bill"
        )
        assert await states(h, run_id) == ["settled"]
        assert await spent(h, run_id) == Decimal("3.00")


@pytest.mark.guarantee("M1", "J3")
async def test_a_paid_call_whose_worker_died_before_anything_left_is_paid_by_the_one_that_made_it(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, tmp_path, monkeypatch, tool="paid.marked", where="before") as (h, world, environment):
        run_id = await killed(dying, h, environment)
        assert (await h.settle(run_id, timeout_s=20)).state == "succeeded"
        assert world.count("paid.marked") == 1
        assert await states(h, run_id) == ["settled"]
        assert await spent(h, run_id) == Decimal("1.00")


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_paid_read_whose_worker_died_is_spent_and_the_one_made_again_is_another(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with stage(database, tmp_path, monkeypatch, tool="paid.look", where=where) as (h, _, environment):
        run_id = await killed(dying, h, environment)
        assert (await h.settle(run_id, timeout_s=20)).state == "succeeded"
        await leases_end(h, run_id)
        for _ in range(2):
            await h.platform.sweeper.runs()
        assert [hold["owner"] for hold in await holds(h, run_id)] == ["read", "read"]
        assert await states(h, run_id) == ["settled", "settled"]
        found = sorted((line["cost"], line["estimated"]) for line in await lines(h, run_id))
        assert found == [(Decimal("1.00"), False), (Decimal("3.00"), True)]


@pytest.mark.guarantee("M1", "M3")
async def test_a_paid_call_whose_worker_died_after_its_commit_is_answered_and_not_charged_again(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(database, tmp_path, monkeypatch, tool="paid.once", where="never") as (h, world, environment):
        run_id = await h.start()
        await dies(dying, h, environment, "crash_after_commit:run", h.organization_id, run_id)
        await time_passes(h.platform.database, run_id)
        assert await spent(h, run_id) == Decimal("1.00")
        assert (await h.settle(run_id, timeout_s=20)).state == "succeeded"
        assert world.count("paid.once") == 1
        assert await states(h, run_id) == ["settled"]
        assert await spent(h, run_id) == Decimal("1.00")
