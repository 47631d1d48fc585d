"""What steps of nodes returned stays readable: a function that began before a deploy goes on after it."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from agentic.contract.results import ErrorCode, ToolResult
from agentic.runtime.workflow.phases import Done, Failed, Later, Parked, Partial, done, read, recorded
from agentic.services.tools.outcomes import refusal

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())


def test_what_was_recorded_is_read_as_what_it_was() -> None:
    found, rejected, parked, later, failed, partial = map(read, RECORDED)
    assert isinstance(found, Done)
    assert found.answer().data == {"id": 9007199254740993, "rate": 1.0}
    assert isinstance(rejected, Done)
    error = rejected.answer().error
    assert error is not None
    assert (error.code, error.said and error.said.text) == (ErrorCode.REJECTED, "Too early.")
    assert isinstance(parked, Parked)
    assert isinstance(later, Later)
    assert later.due_at.isoformat() == "2026-11-30T12:00:00.250000+00:00"
    assert (failed, partial) == (
        Failed(code="crash_loop", message="the node was begun 5 times and never came to an end"),
        Partial(reason="budget_exhausted"),
    )


@pytest.mark.parametrize("value", RECORDED, ids=lambda value: value["kind"])
def test_what_is_written_now_is_what_was_recorded(value: object) -> None:
    assert recorded(read(value)) == value


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(ok=True, data={"n": 2**70, "text": "\u2028ü\U0001f600", "small": 1e-7, "one": 1.0}),
        refusal(ErrorCode.OUTCOME_UNKNOWN),
    ],
    ids=["answer", "refusal"],
)
def test_an_answer_survives_a_server_that_writes_numbers_its_own_way(result: ToolResult) -> None:
    carried = json.loads(json.dumps(recorded(done(result))), parse_int=float)
    carried["v"] = int(carried["v"])
    phase = read(carried)
    assert isinstance(phase, Done)
    assert phase.answer() == result


def test_a_phase_of_a_kind_or_version_that_nobody_knows_is_refused() -> None:
    for value in ({"v": 2, "kind": "parked"}, {"v": 1, "kind": "other"}, None):
        with pytest.raises(ValidationError):
            read(value)
