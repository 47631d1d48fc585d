"""When money ends a run, and what the stop of an answer means: pure decisions."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from agentic.contract.errors import RunEnded
from agentic.contract.results import ErrorCode, ToolError, ToolResult
from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.money import before_request, before_segment
from agentic.runtime.agent.stops import record_stop
from agentic.services.runs.models import Counters, Lease, LedRun, Spending, Unpriced

UNCOUNTED = Unpriced(provider="OpenAI", item="gpt")
COUNTERS = Counters(model_requests=1, tool_calls=0, active_ms=0, context_trust=Trust.USER, cancelled=False)


def spending(spent: str, held: str = "0", limit: str = "1") -> Spending:
    return Spending(spent=Decimal(spent), held=Decimal(held), limit=Decimal(limit))


def led(**given: object) -> LedRun:
    run = LedRun(
        lease=Lease(organization_id=uuid4(), run_id=uuid4(), fence=1, wake_seq=0),
        user_id=None,
        root_run_id=uuid4(),
        lane="interactive",
        definition_name="a",
        definition={},
        tools=(),
        ceilings={},
        context_trust=Trust.USER,
        breakers={},
        attempts_without_progress=1,
        provider_failures=0,
        cancelled=False,
        overdue=False,
        segment_id=uuid4(),
        leased_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return replace(run, **given)  # type: ignore[arg-type]


def code(ended: RunEnded | None) -> str | None:
    return None if ended is None else f"{ended.status} {ended.code}"


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize(
    ("spent", "held", "limit", "exhausted"),
    [
        ("0.99", "0", "1", False),
        ("1", "0", "1", True),
        ("0.5", "0.5", "1", True),
        ("0", "0", "0", True),
        ("99999999999999999999", "0.000000000000000000000000000001", "100000000000000000000", False),
        ("99999999999999999999.999999999999999999999999999999", "0", "100000000000000000000", False),
    ],
)
def test_a_bound_is_met_when_nothing_is_left_of_it(spent: str, held: str, limit: str, exhausted: bool) -> None:
    assert spending(spent, held, limit).exhausted is exhausted


@pytest.mark.guarantee("M2", "W4")
def test_a_segment_begins_unless_tree_or_day_is_exhausted_or_a_request_cannot_be_counted() -> None:
    assert before_segment(led()) is None
    assert before_segment(led(tree=spending("0.5"), day=spending("0.5"))) is None
    assert code(before_segment(led(tree=spending("1"), day=spending("1")))) == "succeeded budget_exhausted"
    assert code(before_segment(led(tree=spending("0"), day=spending("1")))) == "succeeded budget_exhausted_day"
    assert code(before_segment(led(tree=spending("1"), unpriced=UNCOUNTED))) == "failed model_unpriced"


@pytest.mark.guarantee("D4")
def test_a_request_is_made_unless_the_tree_is_exhausted_or_another_cannot_be_counted() -> None:
    assert before_request(COUNTERS, None) is None
    assert code(before_request(replace(COUNTERS, tree=spending("1")), None)) == "succeeded budget_exhausted"
    assert code(before_request(COUNTERS, UNCOUNTED)) == "failed model_unpriced"


def test_the_first_stop_of_a_segment_counts() -> None:
    stop = SegmentStop()
    error = ToolError(code=ErrorCode.INTERNAL_ERROR, message="No.")
    first = record_stop(stop, "a.b", ToolResult(ok=False, error=error, stop="fault"))
    assert record_stop(stop, "a.c", ToolResult(ok=False, error=error, stop="budget_exhausted")) is first
    assert record_stop(stop, "a.d", ToolResult(ok=False, error=error)) is None
