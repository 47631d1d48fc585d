"""The span of a call, twice: a row of the run's tree, and an OpenTelemetry span for whoever collects them (docs/architecture.md).

Our row holds redacted, bounded payloads; the OpenTelemetry span holds neither arguments nor results.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from opentelemetry import trace

from agentic.contract.bounds import bound
from agentic.contract.encoding import encode
from agentic.contract.results import ErrorCode, ToolResult
from agentic.services.tools.attempt import Attempt
from agentic.services.tools.records import SpanRecord, SpanStatus
from agentic.services.tools.result_boundary import redact

PAYLOAD_BYTES = 4 * 1024
"""What a span keeps of a payload inline."""
_tracer = trace.get_tracer("agentic")


@contextmanager
def tool_span(at: Attempt) -> Iterator[trace.Span]:
    """The OpenTelemetry span around a call. An approval is a pause, not a failure, so raising through it records nothing (D3)."""
    with _tracer.start_as_current_span("tool.execute", record_exception=False, set_status_on_exception=False) as span:
        span.set_attribute("tool.name", at.call.tool)
        yield span


def describe(span: trace.Span, at: Attempt, result: ToolResult) -> None:
    """Put the outcome of a call on its OpenTelemetry span."""
    for name, value in span_attributes(at, result).items():
        span.set_attribute(name, value)
    if result.error is not None:
        span.set_status(trace.StatusCode.ERROR, str(result.error.code))


def span_attributes(at: Attempt, result: ToolResult | None) -> dict[str, Any]:
    """Facts of a call that may leave the database."""
    attributes: dict[str, Any] = {"tool.name": at.call.tool, **at.attributes}
    if at.spec is not None:
        attributes["tool.source"] = at.spec.source
        attributes["tool.version"] = at.spec.version
        attributes["tool.side_effects"] = str(at.spec.side_effects)
        attributes["tool.idempotency_class"] = str(at.spec.idempotency)
    if at.claim is not None:
        attributes["call.attempt"] = at.claim.attempt
        attributes["call.epoch"] = at.claim.epoch
    if at.approval_id is not None:
        attributes["approval.id"] = str(at.approval_id)
    if at.decision is not None:
        attributes["policy.effect"] = at.decision.effect
        attributes["policy.rule"] = at.decision.rule_id
    if result is not None:
        attributes["tool.truncated"] = result.meta.truncated
        attributes["tool.outcome_status"] = "succeeded" if result.error is None else str(result.error.code)
        if result.error is not None:
            attributes["tool.reason_code"] = str(result.error.code)
        if result.meta.replayed:
            attributes["replayed"] = True
    return attributes


def open_span(at: Attempt) -> SpanRecord:
    """The row of a call that is about to run."""
    return SpanRecord(
        id=at.span_id,
        parent_id=at.inv.parent_span_id,
        kind="tool",
        name=at.call.tool,
        started_at=at.started_at,
        attributes=_row_attributes(at, None),
        input=_shown(at.arguments),
    )


def closed_span(
    at: Attempt,
    result: ToolResult | None,
    *,
    now: datetime,
    status: SpanStatus | None = None,
    raised: Exception | None = None,
) -> SpanRecord:
    """The row of a call that ended. ``status`` is derived from the result when not given."""
    code = None
    if result is not None and result.error is not None:
        code = str(result.error.code)
    if status is None:
        status = SpanStatus.OK if code is None else _status(code)
    if result is not None and result.meta.unreadable:
        code = str(ErrorCode.INVALID_OUTPUT)  # performed, so the status is ok; its answer could not be read
    attributes = _row_attributes(at, result)
    if raised is not None:
        attributes["raised"] = type(raised).__name__
    return SpanRecord(
        id=at.span_id,
        parent_id=at.inv.parent_span_id,
        kind="tool",
        name=at.call.tool,
        started_at=at.started_at,
        ended_at=max(now, at.started_at),
        status=status,
        code=code,
        attributes=attributes,
        input=_shown(at.arguments),
        output=_shown(result.data) if result is not None and result.ok else None,
    )


def _status(code: str) -> SpanStatus:
    return SpanStatus.UNKNOWN if code == ErrorCode.OUTCOME_UNKNOWN else SpanStatus.ERROR


def _row_attributes(at: Attempt, result: ToolResult | None) -> dict[str, Any]:
    attributes = span_attributes(at, result)
    if at.call.wire_call_id is not None:
        attributes["wire_call_id"] = at.call.wire_call_id
    if at.call.step_path != "agent":
        attributes["step_path"] = at.call.step_path
    return attributes


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    return encode(bound(redact(value), PAYLOAD_BYTES).value).decode()
