"""Whether a demo came out as promised."""

import json
from typing import Any

import pytest

from agentic.local.crash_points import CrashPoint
from agentic.local.demo.options import DemoOptions
from agentic.local.demo.summary import broken_promise, error_line, summary

ACCEPTED, MARKED, BEFORE = CrashPoint.EFFECT_ACCEPTED, CrashPoint.AFTER_WATERMARK, CrashPoint.BEFORE_PAUSE
KEYED = {"id": "msg-1", "to": "per@fjord.example", "answered_from_key": True}


def _tree(*, state: str = "succeeded", attempts: int = 1, uncertain: int = 0, output: Any = None) -> dict[str, Any]:
    return {
        "run": {"id": "r", "state": state, "partial_reason": None, "error_code": None},
        "spans": [
            {"name": "email.send", "attributes": {"policy.effect": "require_approval"}, "output": None},
            *(
                {"name": "email.send", "attributes": {"call.attempt": number + 1}, "output": output}
                for number in range(attempts)
            ),
        ],
        "approvals": [{}],
        "uncertain": [{}] * uncertain,
        "cost": {"cost": "0.0420"},
    }


def _rejected(**given: Any) -> dict[str, Any]:
    return _tree(attempts=0, **given) | {"approvals": [{"status": "rejected"}]}


def _refused(error: str) -> dict[str, Any]:
    asked = {"kind": "llm", "state": "closed", "status": "error", "code": "model_error", "name": "m"}
    tree = _tree(state="failed", attempts=0)
    tree["run"]["error_code"] = "model_refused"
    tree["spans"].append({**asked, "attributes": {"error": error}})
    return tree


def _end(tree: dict[str, Any], emails: int = 1, *, killed: bool = False) -> Any:
    return summary(tree, [{}] * emails, model="rehearsal", seconds_to_card=1.234, seconds=5.678, killed=killed)


def test_the_line_is_one_json_object_with_the_cost_as_text() -> None:
    line = _end(_tree()).line()
    assert "\n" not in line
    said = json.loads(line)
    assert (said["cost"], said["emails_sent"], said["approvals"], said["attempts"]) == ("0.0420", 1, 1, 1)
    assert said["seconds_to_card"] == 1.23


@pytest.mark.parametrize(
    ("options", "tree", "emails", "kept"),
    [
        (DemoOptions(), _tree(), 1, True),
        (DemoOptions(), _tree(), 0, False),
        (DemoOptions(), _tree(), 2, False),
        (DemoOptions(), _rejected(), 0, True),
        (DemoOptions(crash_at=ACCEPTED), _rejected(), 0, True),
        (DemoOptions(), _rejected(), 2, False),
        (DemoOptions(), _rejected(state="failed"), 0, False),
        (DemoOptions(), _rejected(uncertain=1), 0, False),
        (DemoOptions(), _tree(state="failed"), 1, False),
        (DemoOptions(), _tree(uncertain=1), 1, False),
        (DemoOptions(crash_at=ACCEPTED), _tree(attempts=2, output=json.dumps(KEYED)), 1, True),
        (DemoOptions(crash_at=ACCEPTED), _tree(attempts=1, output=json.dumps(KEYED)), 1, False),
        (DemoOptions(crash_at=ACCEPTED), _tree(attempts=2), 1, False),
        (DemoOptions(crash_at=ACCEPTED, vendor_key=False), _tree(uncertain=1), 1, True),
        (DemoOptions(crash_at=ACCEPTED, vendor_key=False), _tree(uncertain=0), 1, False),
        (DemoOptions(crash_at=MARKED), _tree(attempts=2), 1, True),
        (DemoOptions(crash_at=MARKED), _tree(attempts=1), 0, False),
        (DemoOptions(crash_at=MARKED, vendor_key=False), _tree(uncertain=1), 0, True),
        (DemoOptions(crash_at=MARKED, vendor_key=False), _tree(uncertain=1), 1, False),
        (DemoOptions(crash_at=BEFORE, vendor_key=False), _tree(), 1, True),
        (DemoOptions(crash_at=BEFORE), _tree(uncertain=1), 1, False),
    ],
)
def test_a_promise_is_kept_or_what_broke_it_is_said(
    options: DemoOptions, tree: dict[str, Any], emails: int, kept: bool
) -> None:
    end = _end(tree, emails, killed=options.crash_at is not None)
    assert (broken_promise(end, options) is None) is kept


def test_a_crash_that_never_came_is_no_success() -> None:
    broken = broken_promise(_end(_tree()), DemoOptions(crash_at=BEFORE))
    assert broken is not None
    assert "before-pause" in broken


def test_a_model_that_refused_is_quoted() -> None:
    broken = broken_promise(_end(_refused("ModelAuthenticationError: no such key"), 0), DemoOptions())
    assert broken is not None
    assert "model_refused" in broken
    assert "no such key" in broken


def test_a_failure_is_one_json_object_with_its_sentence() -> None:
    assert json.loads(error_line("it broke", None)) == {"status": "error", "error": "it broke"}
    assert json.loads(error_line("it broke", "r"))["run_id"] == "r"
    said = json.loads(_end(_tree(state="failed"), 0).line("it broke"))
    assert (said["status"], said["run_state"], said["error"], said["run_id"]) == ("error", "failed", "it broke", "r")
