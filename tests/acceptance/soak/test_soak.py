"""The soak: whatever dies, is lost, doubled, late, refused or slept over, every run ends and the books agree (W4, J5, M1, D2).

``make soak`` runs it at full size; ``SOAK_RUNS`` and ``SOAK_SEED`` say how many runs and which draw.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import soak_app
from agentic.services.tools.declarations import Tool
from agentic.testing import EffectLedger, Harness, harness
from core_world import rows
from soak import APPROVER, ORGANIZATION

RUNS = int(os.environ.get("SOAK_RUNS", "40"))
SEED = int(os.environ.get("SOAK_SEED", "4"))
LIMIT_S = 600
_METERED = {tool.spec.name for tool in (soak_app.pay, soak_app.buy)}


def soak(database: str, folder: Path) -> dict[str, Any]:
    """Run it in processes of its own; what was drawn."""
    ran = subprocess.run(
        [sys.executable, "-m", "soak", str(RUNS), str(SEED), str(folder)],
        env={**os.environ, "SOAK_URL": database, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-6000:]
    drawn: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return drawn


class Books:
    """What world, journal and usage say of every run and tool."""

    def __init__(self, h: Harness, world: EffectLedger) -> None:
        self.h = h
        self.world = Counter((str(effect.detail), effect.what) for effect in world.effects())

    async def journal(self, state: str) -> Counter[tuple[str, str]]:
        """Claims in this state."""
        found = await rows(
            self.h,
            "select run_id::text as run, tool from agent.idempotency_keys where state = %(state)s",
            state=state,
        )
        return Counter((row["run"], row["tool"]) for row in found)

    async def usage(self, tool: str) -> Counter[tuple[str, str]]:
        """Lines of this tool."""
        found = await rows(
            self.h,
            "select run_id::text as run from agent.ai_usage_log where kind = 'tool' and item = %(tool)s",
            tool=tool,
        )
        return Counter((row["run"], tool) for row in found)

    async def settle(self) -> int:
        """An operator looks at the world and says what became of every uncertain call; how many there were."""
        calls = await self.h.platform.journal.list_uncertain(ORGANIZATION)
        for call in calls:
            happened = self.world[(str(call.run_id), str(call.tool))] > 0
            await self.h.platform.journal.settle(
                ORGANIZATION, call.ref, happened=happened, user_id=APPROVER, evidence="the ledger says so"
            )
        return len(calls)


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.guarantee("W4", "J1", "J5", "M1", "D2", "W1")
async def test_every_run_ends_and_the_books_agree_whatever_happens_to_workers_events_and_people(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = soak(database, tmp_path)
    tools: list[Tool] = [*soak_app.READS, *soak_app.WRITES]
    async with harness(tools=tools, script=[], database_url=database) as h:
        books = Books(h, EffectLedger(tmp_path / "world"))
        ends = Counter(
            (row["state"], row["error_code"]) for row in await rows(h, "select state, error_code from agent.runs")
        )
        uncertain = await books.journal("uncertain")
        with capsys.disabled():
            sys.stdout.write(
                f"\nsoak of {RUNS} runs, seed {SEED}: {drawn}\n{dict(ends)}, {uncertain.total()} uncertain\n"
            )

        assert ends.total() == RUNS
        assert set(ends) <= {("succeeded", None), ("cancelled", None), ("failed", "crash_loop")}
        assert ends[("succeeded", None)] > RUNS / 2
        assert await rows(h, "select id from agent.runs where lease_expires_at is not null or due_at is not null") == []
        assert await rows(h, "select run_id, tool from agent.idempotency_keys where state = 'processing'") == []
        assert await rows(h, "select run_id, tool from agent.approvals where status = 'pending'") == []
        assert await rows(h, "select run_id, ref from agent.run_waits") == []
        assert await rows(h, "select run_id, kind, name from agent.spans where state = 'open'") == []

        completed = await books.journal("completed")
        assert max(books.world.values()) == 1, "an effect happened twice"
        assert completed <= books.world, "a call is complete whose effect the world does not know"
        assert books.world <= completed + uncertain, "an effect happened that no claim stands for"
        holds = await rows(
            h, "select run_id::text as run, tool, owner from agent.usage_reservations where state = 'held'"
        )
        held = Counter((row["run"], row["tool"]) for row in holds)
        assert held == Counter({call: 1 for call in uncertain if call[1] in _METERED}), "money is held for no reason"

        assert await books.settle() == uncertain.total()
        completed = await books.journal("completed")
        assert completed == books.world
        name = soak_app.pay.spec.name
        assert await books.usage(name) == Counter({call: 1 for call in completed if call[1] == name})
        reads = await rows(
            h, "select run_id::text as run from agent.usage_reservations where owner = 'read' and state = 'settled'"
        )
        name = soak_app.buy.spec.name
        assert await books.usage(name) == Counter((row["run"], name) for row in reads)
        assert await rows(h, "select id from agent.usage_reservations where state = 'held'") == []
        async for audit in h.platform.audit.verify_all(ORGANIZATION):
            assert audit.whole, audit.findings
