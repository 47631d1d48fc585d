"""What an answer makes of a node, for every code there is."""

import pytest

from agentic.contract.errors import RunEnded
from agentic.contract.results import ErrorCode, Said, ToolResult, ToolResultMeta
from agentic.contract.trust import Trust
from agentic.runtime.workflow.ending import STOPS, NodeEnd, ended_by, ended_with, failed
from agentic.runtime.workflow.phases import Done, Failed, Partial
from agentic.services.tools.outcomes import mends_by_waiting, refusal


@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_is_tried_again_or_answered_or_stops_the_workflow(code: ErrorCode) -> None:
    end = ended_with(refusal(code), None)
    if mends_by_waiting(code):
        assert end is code
        return
    assert isinstance(end, NodeEnd)
    assert (end.run.state, end.run.error_code) == ("failed", code)
    assert isinstance(end.phase, Failed if code in STOPS else Done)


@pytest.mark.guarantee("M2")
def test_the_meters_stops_are_obeyed_and_a_code_of_the_same_name_is_an_answer() -> None:
    exhausted = refusal(ErrorCode.BUDGET_EXHAUSTED)
    said = ended_with(exhausted, None)
    assert isinstance(said, NodeEnd)
    assert isinstance(said.phase, Done)
    ours = exhausted.model_copy(
        update={"stop": "budget_exhausted", "meta": ToolResultMeta(partial_reason="budget_exhausted")}
    )
    stopped = ended_with(ours, None)
    assert isinstance(stopped, NodeEnd)
    assert stopped.phase == Partial(reason="budget_exhausted")
    fault = ended_with(refusal(ErrorCode.UNAVAILABLE).model_copy(update={"stop": "fault"}), None)
    assert isinstance(fault, NodeEnd)
    assert isinstance(fault.phase, Failed)


def test_an_answers_label_is_the_lower_of_the_tools_and_its_own() -> None:
    answered = ended_with(ToolResult(ok=True, data=1, meta=ToolResultMeta(untrusted=True)), None)
    assert isinstance(answered, NodeEnd)
    assert (answered.trust, answered.run.state) == (Trust.EXTERNAL, "succeeded")
    told = ended_with(refusal(ErrorCode.CONFLICT, said=Said(by="remote", text="no")), None)
    assert isinstance(told, NodeEnd)
    assert told.trust is Trust.EXTERNAL


def test_a_run_that_is_over_ends_its_node_the_same_way() -> None:
    assert ended_by(RunEnded(status="cancelled", code="cancelled", message="m")).run.state == "cancelled"
    assert ended_by(RunEnded(status="failed", code="model_unpriced", message="m")) == failed("model_unpriced", "m")
    partial = ended_by(RunEnded(status="succeeded", code="limit_reached", message="m"))
    assert partial.phase == Partial(reason="limit_reached")
