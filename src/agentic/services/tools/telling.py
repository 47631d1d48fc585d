"""Tells of one call while it happens: its OpenTelemetry span, its events, and its numbers at the end (docs/telemetry.md).

Telling never decides and never fails a call: after an effect nothing may raise (J4).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from opentelemetry import trace

from agentic.contract.clock import Clock
from agentic.contract.encoding import encoded_size
from agentic.contract.errors import GiveUp, Parked, RetryLater, RunEnded
from agentic.contract.results import ToolResult
from agentic.services.tools.attempt import Attempt
from agentic.services.tools.call_events import CallEvent, CallEventName, EventSink, exported_call_id, tell
from agentic.services.tools.outcomes import OutcomeStatus, outcome_status, reason_code
from agentic.services.tools.telemetry import count_end
from agentic.services.tools.tracing import execute_span, exported_name, exported_source, harmless, span_attributes

_NOT_ENDED = (Parked, RetryLater, GiveUp, RunEnded)
"""With these the call waits, comes back or belongs to somebody else; no failure (D3)."""


class Telling:
    """What is told of one invocation. Each event at most once; exactly one of the four that end a call, if it ends here."""

    def __init__(self, at: Attempt, span: trace.Span, *, clock: Clock, sink: EventSink) -> None:
        self._at = at
        self._span = span
        self._clock = clock
        self._sink = sink
        self._began = clock.monotonic()
        self._ran = False

    def proposed(self) -> None:
        """The call is here."""
        self._tell(call_event(CallEventName.PROPOSED, self._at))

    def authorized(self) -> None:
        """The call may run."""
        self._tell(call_event(CallEventName.AUTHORIZED, self._at))

    def started(self) -> None:
        """The handler is next."""
        self._ran = True
        self._tell(call_event(CallEventName.STARTED, self._at))

    def ended(self, result: ToolResult) -> None:
        """The call has its answer: the last event, the span's outcome, the numbers."""
        event = end_event(self._at, result, duration_s=self._clock.monotonic() - self._began)
        self._tell(event)
        with harmless():
            count_end(event, ran=self._ran, replayed=result.meta.replayed)
        with harmless():
            self.describe(result)
            if result.error is not None:
                self._span.set_status(trace.StatusCode.ERROR, str(result.error.code))

    def left(self, error: Exception) -> None:
        """The call goes up to the run. A handler's own error ended it; a pause, a live claim, a lost lease did not."""
        if self._at.ended is not None:
            self.ended(self._at.ended)
            return
        with harmless():
            self.describe(None)
            if not isinstance(error, _NOT_ENDED):
                self._span.set_status(trace.StatusCode.ERROR, type(error).__name__)  # its text may hold anything

    def describe(self, result: ToolResult | None) -> None:
        """Put what is known of the call on its span."""
        if self._span.is_recording():
            self._span.set_attributes(span_attributes(self._at, result))

    def _tell(self, event: CallEvent) -> None:
        self._at.inv.trail.events.append(event)
        with harmless():
            if self._span.is_recording():
                self._span.add_event(
                    event.name, {name: value for name, value in event.fields().items() if value is not None}
                )
        tell(event, self._sink)


@contextmanager
def telling(at: Attempt, *, clock: Clock, sink: EventSink) -> Iterator[Telling]:
    """The span around a call, and the voice that tells of it."""
    with execute_span(at) as span:
        voice = Telling(at, span, clock=clock, sink=sink)
        voice.proposed()
        try:
            yield voice
        except Exception as error:
            voice.left(error)
            raise


def call_event(
    name: CallEventName,
    at: Attempt,
    *,
    outcome_status: OutcomeStatus | None = None,
    reason_code: str | None = None,
    duration_ms: int | None = None,
    output_bytes: int | None = None,
    truncated: bool = False,
) -> CallEvent:
    """An event of a call as far as it is known. Pure."""
    spec = at.spec
    return CallEvent(
        name=name,
        invocation_id=at.claim.span_id if at.claim is not None else at.span_id,
        run_id=at.inv.run_id,
        step_path=at.call.step_path,
        call_id=exported_call_id(at.call.wire_call_id),
        tool_name=exported_name(at),
        tool_source=exported_source(at),
        tool_version=spec.version if spec is not None else None,
        idempotency_class=str(spec.idempotency) if spec is not None else None,
        parallel_group=at.call.parallel_group,
        effect_sent=at.effect_may_have_left,
        outcome_status=outcome_status,
        reason_code=reason_code,
        duration_ms=duration_ms,
        output_bytes=output_bytes,
        truncated=truncated,
    )


def end_event(at: Attempt, result: ToolResult, *, duration_s: float) -> CallEvent:
    """The event of a call that has its answer. Pure."""
    status = outcome_status(result)
    return call_event(
        _ends(status),
        at,
        outcome_status=status,
        reason_code=reason_code(result),
        duration_ms=round(max(duration_s, 0) * 1000),
        output_bytes=encoded_size(result.data) if result.data is not None else 0,
        truncated=result.meta.truncated,
    )


def _ends(status: OutcomeStatus) -> CallEventName:
    match status:
        case "succeeded":
            return CallEventName.COMPLETED
        case "denied":
            return CallEventName.DENIED
        case "failed" | "unavailable":
            return CallEventName.FAILED
        case "uncertain":
            return CallEventName.UNCERTAIN
        case _ as never:
            assert_never(never)
