"""Whether the story of later answers came out as promised."""

import dataclasses
import json
import re
from typing import Any

import pytest

from agentic.local.demo.command import FAILED, OK, _conclude
from agentic.local.demo.enrichment.summary import EnrichmentSummary, broken_promise
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.screen import Screen

GOOD = EnrichmentSummary(
    run_id="r",
    status="succeeded",
    model="rehearsal",
    jobs=1,
    job_state="completed",
    callbacks=2,
    found=2,
    usage_lines=1,
    job_cost="0.10",
    cost="0.10",
    emails=0,
    approvals=1,
    rejected=False,
    uncertain=0,
    parked=True,
    error_code=None,
    model_error=None,
    seconds=1.0,
)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"status": "failed", "error_code": "deadline"}, r"ended failed \(deadline\)"),
        ({"emails": 1}, "1 emails were sent"),
        ({"uncertain": 1}, "an outcome is unknown"),
        ({"jobs": 0, "job_state": None}, "0 jobs were submitted"),
        ({"jobs": 2}, "2 jobs were submitted"),
        ({"parked": False}, "did not wait"),
        ({"job_state": "failed"}, "the job is failed"),
        ({"callbacks": 1}, "did not take every callback"),
        ({"usage_lines": 2}, "paid 2 times"),
        ({"usage_lines": 0}, "paid 0 times"),
        ({"rejected": True, "jobs": 0, "usage_lines": 1}, "never submitted"),
    ],
)
def test_each_promise_that_broke_is_said_and_makes_the_status_one(
    changed: dict[str, Any], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    end = dataclasses.replace(GOOD, **changed)
    assert _conclude(end, [], {"uncertain": []}, DemoOptions(enrich=True, json=True), Screen()) == FAILED
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], said["run_state"]) == ("error", end.status)
    assert re.search(sentence, said["error"])


def test_a_story_that_came_out_as_promised_ends_with_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert _conclude(GOOD, [], {"uncertain": []}, DemoOptions(enrich=True, json=True), Screen()) == OK
    said = json.loads(capsys.readouterr().out)
    assert (said["job_state"], said["usage_lines"], said["cost"], said["emails"]) == ("completed", 1, "0.10", 0)


def test_a_rejected_batch_breaks_no_promise() -> None:
    end = dataclasses.replace(GOOD, rejected=True, jobs=0, job_state=None, callbacks=0, usage_lines=0, parked=False)
    assert broken_promise(end) is None
