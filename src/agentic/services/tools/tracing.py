"""The span of a call, twice: a row of the run's tree, and an OpenTelemetry span for whoever collects them (docs/telemetry.md).

Our row holds redacted, bounded payloads; the OpenTelemetry span holds neither arguments nor results.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, assert_never

from opentelemetry import trace

from agentic.contract.bounds import bound
from agentic.contract.encoding import encode
from agentic.contract.faults import where
from agentic.contract.results import ToolResult
from agentic.services.tools.attempt import Attempt, Refused
from agentic.services.tools.outcomes import OutcomeStatus, outcome_status, reason_code
from agentic.services.tools.records import SpanRecord, SpanStatus
from agentic.services.tools.redaction import redact

PAYLOAD_BYTES = 4 * 1024
"""What a span keeps of a payload inline."""
UNKNOWN = "unknown"
"""Stands outside the database for a tool the run does not have."""
_log = logging.getLogger(__name__)
_tracer = trace.get_tracer("agentic")


@contextmanager
def execute_span(at: Attempt) -> Iterator[trace.Span]:
    """The OpenTelemetry span around a call. What raises through it is described by its class alone, never by its text (B2)."""
    with _current_span("tool.execute") as span:
        with harmless():
            if span.is_recording():
                span.set_attributes(span_attributes(at, None))
        yield span


def untraced() -> trace.Span:
    """Stands for the span of a call that is only asked about."""
    return trace.INVALID_SPAN


@contextmanager
def step_span(name: str) -> Iterator[trace.Span]:
    """A span under a call's, for one step of it; nothing at all when the call's own is not recorded."""
    if not trace.get_current_span().is_recording():
        yield trace.INVALID_SPAN
        return
    with _current_span(name) as span:
        try:
            yield span
        except Exception as error:
            with harmless():
                span.set_status(
                    trace.StatusCode.ERROR, str(error.code) if isinstance(error, Refused) else type(error).__name__
                )
            raise


@contextmanager
def harmless() -> Iterator[None]:
    """Around what is told to somebody else's telemetry: what that raises is logged and stops nobody (J4)."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a provider, a processor or an exporter of the deployment raises
        _log.warning("telemetry could not be told: %s", where(error))


@contextmanager
def _current_span(name: str) -> Iterator[trace.Span]:
    """A span that is the current one; an invalid one where the provider in use cannot start any."""
    span: trace.Span = trace.INVALID_SPAN
    with harmless():
        span = _tracer.start_span(name)
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    finally:
        with harmless():
            span.end()


def exported_name(at: Attempt) -> str:
    """The tool's name outside the database: what a model made up is its text, and as many values as it likes."""
    return at.spec.name if at.spec is not None else UNKNOWN


def exported_source(at: Attempt) -> str:
    """Who brought the tool, as ``ToolSpec.source`` says."""
    return at.spec.source if at.spec is not None else UNKNOWN


def span_attributes(at: Attempt, result: ToolResult | None) -> dict[str, Any]:
    """Facts of a call that may leave the database.

    Args:
        result: the answer; ``None`` while there is none.
    """
    attributes: dict[str, Any] = {"tool.name": exported_name(at), **at.attributes}
    if at.spec is not None:
        attributes["tool.source"] = at.spec.source
        attributes["tool.version"] = at.spec.version
        attributes["tool.side_effects"] = str(at.spec.side_effects)
        attributes["tool.idempotency_class"] = str(at.spec.idempotency)
    if at.call.parallel_group is not None:
        attributes["tool.parallel_group"] = at.call.parallel_group
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
        attributes["tool.outcome_status"] = outcome_status(result)
        code = reason_code(result)
        if code is not None:
            attributes["tool.reason_code"] = code
        if result.meta.replayed:
            attributes["replayed"] = True
        if result.meta.usage_id is not None:
            attributes["usage.id"] = str(result.meta.usage_id)
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
        input=_shown(at.arguments, at.secrets),
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
    if status is None:
        status = SpanStatus.OK if result is None else _status(outcome_status(result))
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
        code=reason_code(result) if result is not None else None,
        attributes=attributes,
        input=_shown(at.arguments, at.secrets),
        output=_shown(result.data, at.secrets) if result is not None and result.ok else None,
    )


def _status(status: OutcomeStatus) -> SpanStatus:
    match status:
        case "succeeded":
            return SpanStatus.OK
        case "failed" | "denied" | "unavailable":
            return SpanStatus.ERROR
        case "uncertain":
            return SpanStatus.UNKNOWN
        case _ as never:
            assert_never(never)


def _row_attributes(at: Attempt, result: ToolResult | None) -> dict[str, Any]:
    attributes = span_attributes(at, result)
    if at.call.wire_call_id is not None:
        attributes["wire_call_id"] = at.call.wire_call_id
    if at.call.step_path != "agent":
        attributes["step_path"] = at.call.step_path
    return attributes


def _shown(value: Any, secrets: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    return encode(bound(redact(value, secrets), PAYLOAD_BYTES).value).decode()
