"""Two workers on one run: the first stalls past its leases, the second ends the run, the first wakes. It writes nothing (J5, J1)."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

import crash_app
from agentic.testing import EffectLedger, Harness, harness
from core_world import rows
from time_passes import time_passes
from warm_processes import Process, Warm

BOUND_S = 40
TABLES = (
    "runs",
    "run_messages",
    "proposals",
    "idempotency_keys",
    "policy_decisions",
    "effects",
    "spans",
    "ai_usage_log",
)


async def stopped(pid: int) -> None:
    """Until the process stands still."""
    stat = Path(f"/proc/{pid}/stat")
    async with asyncio.timeout(BOUND_S):
        while (await asyncio.to_thread(stat.read_text)).rpartition(")")[2].split()[0] != "T":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


@asynccontextmanager
async def stalled(dying: Warm, h: Harness, run_id: UUID) -> AsyncIterator[Process]:
    """A worker that leads the run and has stalled; it is gone when the block ends."""
    arguments = ("crash_app:make", str(h.organization_id), str(run_id), "20", "1")
    environment = {**os.environ, "AGENTIC_CHILD_DATABASE_URL": h.database_url}
    with dying.started("agentic.testing.child_process:main", *arguments, environment=environment) as worker:
        await stopped(worker.pid)
        await time_passes(h.platform.database, run_id)
        yield worker


async def everything(h: Harness) -> dict[str, list[str]]:
    """Every row of a run's record."""
    return {
        table: sorted(row["row"] for row in await rows(h, f"select to_jsonb(t)::text as row from agent.{table} t"))
        for table in TABLES
    }


@pytest.mark.parametrize(
    ("tool", "where", "claim"),
    [
        ("act.again", "stalled before", "completed"),
        ("act.keyed", "stalled after", "completed"),
        ("act.marked", "stalled before", "completed"),
        ("act.once", "stalled after", "uncertain"),
    ],
)
@pytest.mark.guarantee("J5", "J1")
async def test_a_worker_that_wakes_after_another_has_ended_its_run_changes_no_row(
    database: str, dying: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, where: str, claim: str
) -> None:
    for name, value in {"TOOL": tool, "WHERE": where, "LEDGER": str(tmp_path / "world"), "READ": ""}.items():
        monkeypatch.setenv(f"CRASH_{name}", value)
    world = EffectLedger(tmp_path / "world")

    def model() -> object:
        return crash_app.make().models["scripted"]()

    async with harness(tools=crash_app.TOOLS, script=model, database_url=database, claim_grace_s=0.2) as h:
        run_id = await h.start()
        async with stalled(dying, h, run_id) as first:
            assert (await h.settle(run_id, timeout_s=BOUND_S)).state == "succeeded"
            before = await everything(h)
            os.kill(first.pid, signal.SIGCONT)
            assert await asyncio.to_thread(first.wait, BOUND_S) == 0
            assert await everything(h) == before
        [row] = await rows(h, "select state from agent.idempotency_keys")
        assert row["state"] == claim
        effects = world.effects(tool)
        once = {effect.key or effect.detail["text"] for effect in effects}
        assert len(once) == 1
        assert len(effects) == 1 or tool == "act.again", "only an idempotent call may be made twice, in the same words"
