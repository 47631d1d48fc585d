"""Whether the demo of somebody else's server came out as promised."""

import json
from typing import Any

import pytest

from agentic.local.demo.mcp.summary import broken_promise, summary


def _tree(*, state: str = "succeeded", uncertain: int = 0, approval: str = "approved") -> dict[str, Any]:
    return {
        "run": {"id": "r", "state": state, "partial_reason": None, "error_code": None},
        "spans": [],
        "approvals": [{"status": approval}],
        "uncertain": [{}] * uncertain,
        "cost": {"cost": "0.0420"},
    }


def _end(tree: dict[str, Any], **changes: Any) -> Any:
    given: dict[str, Any] = {"tools": 3, "notes": 1, "fenced": True, "emails": 0, "killed": False, **changes}
    return summary(tree, model="rehearsal", server="pottery", seconds=1.234, **given)


def test_the_line_is_one_json_object_with_the_cost_as_text() -> None:
    line = _end(_tree()).line("why")
    assert "\n" not in line
    assert json.loads(line) | {
        "cost": "0.0420",
        "error": "why",
        "run_state": "succeeded",
        "seconds": 1.23,
    } == json.loads(line)


@pytest.mark.parametrize(
    ("end", "crash"),
    [
        (_end(_tree()), False),
        (_end(_tree(approval="rejected"), notes=0), False),
        (_end(_tree(uncertain=1), killed=True), True),
    ],
)
def test_every_promised_end_is_kept(end: Any, crash: bool) -> None:
    assert broken_promise(end, crash=crash) is None


@pytest.mark.parametrize(
    ("end", "crash", "said"),
    [
        (_end(_tree(state="failed")), False, "ended failed"),
        (_end(_tree(), emails=1), False, "may send none"),
        (_end(_tree(), tools=2), False, "2 tools are approved"),
        (_end(_tree(), fenced=False), False, "not labelled"),
        (_end(_tree(), notes=2), False, "2 notes"),
        (_end(_tree(approval="rejected"), notes=1, fenced=True), True, "no worker died"),
        (_end(_tree(uncertain=1)), False, "though the server answered"),
        (_end(_tree(uncertain=1)), True, "no worker died"),
        (_end(_tree(), killed=True), True, "did not reach the operator"),
        (_end(_tree(approval="rejected", uncertain=1), notes=0), False, "though the call was rejected"),
    ],
)
def test_every_broken_promise_is_named(end: Any, crash: bool, said: str) -> None:
    assert said in str(broken_promise(end, crash=crash))
