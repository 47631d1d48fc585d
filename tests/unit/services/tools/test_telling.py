"""What is told of a call: every code under its status and its event, never a word of a payload, and nothing that can fail a call."""

import logging
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from opentelemetry import trace
from pydantic import BaseModel

from agentic.contract.clock import SystemClock
from agentic.contract.errors import ClaimInFlight, LeaseLost
from agentic.contract.principal import Principal
from agentic.contract.results import ErrorCode, ToolResult, ToolResultMeta
from agentic.contract.trust import Trust
from agentic.services.tools import tracing
from agentic.services.tools.attempt import Attempt
from agentic.services.tools.call_events import CallEvent, CallEventName, log_event
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import internal_tool
from agentic.services.tools.models import FrozenTool
from agentic.services.tools.outcomes import OUTCOMES, refusal
from agentic.services.tools.records import Trail
from agentic.services.tools.telemetry import count_mcp_connect_failure, count_mcp_request
from agentic.services.tools.telling import call_event, end_event, telling
from agentic.services.tools.tracing import closed_span
from telemetry_recorder import Recording, recorded

SECRET = "ingrid@fjord.example"
LABELS = {"name": "notes.find", "source": "builtin"}


class Words(BaseModel):
    text: str


@internal_tool("notes.find", "Finds.")
async def find(ctx: CallContext, args: Words) -> dict[str, str]:
    return {}


def attempt(tool: str = "notes.find", **call: Any) -> Attempt:
    spec = find.spec if tool == "notes.find" else None
    inv = ToolInvocation(
        principal=Principal(organization_id=uuid4()),
        run_id=uuid4(),
        root_run_id=uuid4(),
        definition="agent",
        fence=1,
        tools={"notes.find": FrozenTool(spec=find.spec, mode=find.spec.mode)},
        context_trust=Trust.INTERNAL,
    )
    return Attempt(
        call=ToolCall(tool=tool, arguments_text=f'{{"text": "{SECRET}"}}', **call),
        inv=inv,
        spec=spec,
        started_at=datetime.now(UTC),
        deadline=0,
        arguments={"text": SECRET},
    )


def tell(at: Attempt, result: ToolResult | Exception, *, ran: bool = True) -> tuple[Recording, list[CallEvent]]:
    """Tell a whole call, as the invoker does."""
    told: list[CallEvent] = []
    raises = pytest.raises(type(result)) if isinstance(result, Exception) else nullcontext()
    with recorded() as recording, raises, telling(at, clock=SystemClock(), sink=told.append) as voice:
        if ran:
            voice.authorized()
            voice.started()
        if isinstance(result, Exception):
            raise result
        voice.ended(result)
    return recording, told


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_is_told_under_its_status_and_counted_once(code: ErrorCode) -> None:
    at = attempt()
    result = refusal(code)
    recording, told = tell(at, result, ran=False)
    status = OUTCOMES[code].status
    last = {"denied": "denied", "uncertain": "uncertain", "failed": "failed", "unavailable": "failed"}[status]
    assert [event.name for event in told] == ["tool.call.proposed", f"tool.call.{last}"]
    assert (told[-1].outcome_status, told[-1].reason_code) == (status, code)
    [span] = recording.calls()
    assert (span.attributes["tool.outcome_status"], span.attributes["tool.reason_code"]) == (status, code)
    assert span.status == ("ERROR", code)
    assert recording.total("tool_calls_total") == {frozenset({**LABELS, "outcome_status": status}.items()): 1}
    assert recording.total("tool_failures_total") == {frozenset({**LABELS, "reason_code": code}.items()): 1}
    assert len(recording.values("tool_uncertain_total")) == (status == "uncertain")
    row = closed_span(at, result, now=datetime.now(UTC))
    assert (row.code, row.attributes["tool.outcome_status"]) == (code, status)
    assert row.status == ("unknown" if status == "uncertain" else "error")


def test_a_call_that_succeeds_is_told_from_proposal_to_end() -> None:
    at = attempt(wire_call_id="call_1", parallel_group="reads")
    result = ToolResult(ok=True, data={"name": "Å"}, meta=ToolResultMeta(truncated=True))
    recording, told = tell(at, result)
    assert [event.name.removeprefix("tool.call.") for event in told] == [
        "proposed",
        "authorized",
        "started",
        "completed",
    ]
    assert told[-1].fields() == {
        "invocation_id": str(at.span_id),
        "run_id": str(at.inv.run_id),
        "step_path": "agent",
        "call_id": "call_1",
        "tool_name": "notes.find",
        "tool_source": "builtin",
        "tool_version": 1,
        "outcome_status": "succeeded",
        "reason_code": None,
        "idempotency_class": "read_only",
        "effect_sent": False,
        "duration_ms": told[-1].duration_ms,
        "output_bytes": len('{"name":"Å"}'.encode()),
        "truncated": True,
        "parallel_group": "reads",
    }
    assert at.inv.trail.events == told
    [span] = recording.calls()
    assert [name for name, _ in span.events] == [event.name for event in told]
    assert span.status is None
    assert {name: span.attributes[f"tool.{name}"] for name in ("name", "source", "version", "idempotency_class")} == {
        "name": "notes.find",
        "source": "builtin",
        "version": 1,
        "idempotency_class": "read_only",
    }
    assert span.attributes["tool.outcome_status"] == "succeeded"
    assert span.attributes["tool.truncated"] is True
    assert span.attributes["tool.parallel_group"] == "reads"
    assert recording.values("tool_output_bytes") == [13]
    assert len(recording.values("tool_duration_seconds")) == 1
    assert recording.total("tool_truncations_total") == {frozenset(LABELS.items()): 1}
    assert recording.total("tool_failures_total") == {}


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize(
    "result", [ToolResult(ok=True, data={}), refusal(ErrorCode.OUTCOME_UNKNOWN)], ids=["ok", "unknown"]
)
def test_a_replay_counts_as_a_call_and_as_nothing_else(result: ToolResult) -> None:
    meta = ToolResultMeta(replayed=True, truncated=True)
    recording, told = tell(attempt(), result.model_copy(update={"meta": meta}), ran=False)
    assert "tool.call.started" not in [event.name for event in told]
    assert {name for name, _, _ in recording.measured} == {"tool_calls_total"}
    assert recording.calls()[0].attributes["replayed"] is True


def test_an_effect_whose_answer_cannot_be_read_succeeded_and_says_so() -> None:
    at = attempt()
    result = ToolResult(ok=True, meta=ToolResultMeta(unreadable=True))
    recording, told = tell(at, result)
    assert (told[-1].name, told[-1].reason_code) == (CallEventName.COMPLETED, "invalid_output")
    assert recording.total("tool_failures_total") == {}
    row = closed_span(at, result, now=datetime.now(UTC))
    assert (row.status, row.code) == ("ok", "invalid_output")


@pytest.mark.guarantee("D3")
@pytest.mark.parametrize(
    "error",
    [ClaimInFlight(tool="notes.find", due_at=datetime.now(UTC)), LeaseLost("led by another")],
    ids=["in flight", "lease lost"],
)
def test_a_call_that_comes_back_or_belongs_to_another_is_no_failure(error: Exception) -> None:
    recording, told = tell(attempt(), error)
    assert told[-1].name is CallEventName.STARTED
    assert recording.measured == []
    [span] = recording.calls()
    assert span.status is None
    assert span.ended


@pytest.mark.guarantee("B2")
def test_what_raises_is_told_by_its_class_alone() -> None:
    recording, told = tell(attempt(), ConnectionError(f"{SECRET} could not be reached"))
    assert told[-1].name is CallEventName.STARTED
    [span] = recording.calls()
    assert span.status == ("ERROR", "ConnectionError")
    assert SECRET not in repr((told, span.attributes, span.events))


def test_a_handlers_own_error_ends_the_call_it_is_raised_from() -> None:
    at = attempt()
    at.ended = refusal(ErrorCode.INTERNAL_ERROR)
    recording, told = tell(at, ValueError(SECRET))
    assert (told[-1].name, told[-1].reason_code) == (CallEventName.FAILED, "internal_error")
    assert len(recording.values("tool_failures_total")) == 1


@pytest.mark.guarantee("B2", "T1")
def test_nothing_a_model_wrote_nor_any_tenant_leaves_with_an_event_a_span_or_a_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    at = attempt(f"delete {SECRET}", wire_call_id=f"id of {SECRET}")
    with caplog.at_level(logging.INFO, logger="agentic.events"):
        recording, told = tell(at, refusal(ErrorCode.UNKNOWN_TOOL, detail=SECRET), ran=False)
        for event in told:
            log_event(event)
    logged = [vars(record) for record in caplog.records]
    everything = repr((told, recording.measured, logged, [(span.attributes, span.events) for span in recording.spans]))
    assert SECRET not in everything
    assert str(at.inv.organization_id) not in everything
    assert (told[-1].tool_name, told[-1].tool_source, told[-1].call_id) == ("unknown", "unknown", None)
    assert closed_span(at, None, now=datetime.now(UTC)).name == f"delete {SECRET}"  # the row says what it was


def test_a_log_record_carries_the_event_as_its_extra(caplog: pytest.LogCaptureFixture) -> None:
    event = end_event(attempt(), refusal(ErrorCode.DENIED), duration_s=1.5)
    with caplog.at_level(logging.INFO, logger="agentic.events"):
        log_event(event)
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", "tool.call.denied notes.find")
    assert event.fields().items() <= vars(record).items()
    assert vars(record)["duration_ms"] == 1500


@pytest.mark.guarantee("J4")
def test_a_sink_that_breaks_is_logged_and_the_call_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_event: CallEvent) -> None:
        raise OSError("the disk is full")

    at = attempt()
    with telling(at, clock=SystemClock(), sink=broken) as voice:
        voice.ended(ToolResult(ok=True))
    assert [event.name for event in at.inv.trail.events] == ["tool.call.proposed", "tool.call.completed"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


class _BreaksAtStart(trace.NoOpTracer):
    def start_span(self, *_args: Any, **_kwargs: Any) -> trace.Span:
        raise RuntimeError(SECRET)


class _BrokenSpan(trace.NonRecordingSpan):
    def _raise(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError(SECRET)

    set_attribute = set_attributes = add_event = set_status = end = _raise

    def is_recording(self) -> bool:
        return True


class _BreaksAfterwards(trace.NoOpTracer):
    def start_span(self, *_args: Any, **_kwargs: Any) -> trace.Span:
        return _BrokenSpan(trace.INVALID_SPAN_CONTEXT)


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize("tracer", [_BreaksAtStart(), _BreaksAfterwards()], ids=["at its start", "afterwards"])
@pytest.mark.parametrize(
    "end", [ToolResult(ok=True), refusal(ErrorCode.DENIED), KeyError("gone")], ids=["ok", "refused", "raised"]
)
def test_a_telemetry_provider_that_breaks_is_logged_and_the_call_goes_on(
    tracer: trace.Tracer, end: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "_tracer", tracer)
    told: list[CallEvent] = []
    raises = pytest.raises(KeyError) if isinstance(end, KeyError) else nullcontext()
    with raises, telling(attempt(), clock=SystemClock(), sink=told.append) as voice:
        with tracing.step_span("tool.validate"):
            voice.started()
        if isinstance(end, KeyError):
            raise end
        voice.ended(end)
    assert len(told) == (2 if isinstance(end, KeyError) else 3)
    assert "telemetry could not be told: RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_events_of_an_append_that_did_not_happen_come_before_later_ones() -> None:
    trail = Trail()
    first, second = (call_event(CallEventName.PROPOSED, attempt()) for _ in range(2))
    trail.events.append(first)
    taken = trail.take()
    assert (taken.events, trail.events) == ([first], [])
    trail.events.append(second)
    trail.put_back(taken)
    assert trail.events == [first, second]


def test_requests_to_remote_servers_and_failed_connections_are_counted_by_their_labels() -> None:
    with recorded() as recording:
        count_mcp_request(server="acme", method="tools/call", outcome="ok")
        count_mcp_connect_failure(server="acme", reason_code="timeout")
    assert recording.measured == [
        ("mcp_requests_total", 1, {"server": "acme", "method": "tools/call", "outcome": "ok"}),
        ("mcp_connect_failures_total", 1, {"server": "acme", "reason_code": "timeout"}),
    ]
