"""The demo killed at points of other kinds than the call itself, one after the other in one folder: while it parks, and as it is decided.

All points, for all classes of tools, are the crash matrix's.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentic.local.crash_points import CrashPoint

pytestmark = pytest.mark.timeout(600)
POINTS = (CrashPoint.INSIDE_PARK, CrashPoint.AFTER_DECISION)


@pytest.mark.guarantee("J1", "J8", "W1")
async def test_wherever_the_demo_is_killed_one_email_goes_out_and_the_next_demo_in_the_folder_is_well(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    for point in POINTS:
        ended = await here.run("demo", "--yes", "--json", "--crash-at", point)
        assert ended.status == 0, ended.stderr
        end = ended.last
        assert (end["status"], end["killed"], end["emails_sent"], end["approvals"], end["uncertain"]) == (
            "succeeded",
            True,
            1,
            1,
            0,
        )
        assert f"was killed (SIGKILL) at {point}" in ended.stderr
    await here.workers_gone()
    mailbox = (here.folder / "mailbox.jsonl").read_text().splitlines()
    assert len([line for line in mailbox if json.loads(line)["message"]]) == len(POINTS)


@pytest.mark.guarantee("J3")
async def test_a_demo_without_a_key_that_is_killed_before_the_email_left_says_that_nobody_knows(
    agentic: Callable[..., Any], database: str
) -> None:
    here = agentic(DATABASE_URL=database)
    ended = await here.run("demo", "--yes", "--json", "--no-vendor-key", "--crash-at", CrashPoint.AFTER_WATERMARK)
    assert ended.status == 0, ended.stderr
    end = ended.last
    assert (end["killed"], end["emails_sent"], end["uncertain"]) == (True, 0, 1)
    assert "uncertain confirm" in ended.stderr
