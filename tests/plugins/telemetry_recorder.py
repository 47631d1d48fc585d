"""Stands where an OpenTelemetry SDK would: keeps what the package tells the API while a test listens.

A process can install its providers once only, so they are installed at the first use and hand on to whoever listens at the moment.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.util.types import Attributes, AttributeValue

Labels = frozenset[tuple[str, Any]]


class RecordedSpan(trace.NonRecordingSpan):
    """A span as an exporter would get it."""

    def __init__(self, name: str, parent: trace.Span, number: int) -> None:
        super().__init__(trace.SpanContext(trace_id=1, span_id=number, is_remote=False))
        self.name = name
        self.parent = parent.name if isinstance(parent, RecordedSpan) else None
        self.attributes: dict[str, AttributeValue] = {}
        self.events: list[tuple[str, dict[str, AttributeValue]]] = []
        self.status: tuple[str, str | None] | None = None
        self.ended = False

    def is_recording(self) -> bool:
        return not self.ended

    def end(self, end_time: int | None = None) -> None:
        self.ended = True

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        self.attributes.update(attributes)

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        self.events.append((str(name), dict(attributes or {})))

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        self.events.append(("exception", {"message": str(exception)}))

    def set_status(self, status: trace.Status | trace.StatusCode, description: str | None = None) -> None:
        code = status.status_code if isinstance(status, trace.Status) else status
        self.status = (code.name, description)


@dataclass(kw_only=True)
class Recording:
    """What was told while somebody listened."""

    spans: list[RecordedSpan] = field(default_factory=list)
    measured: list[tuple[str, float, dict[str, Any]]] = field(default_factory=list)

    def calls(self) -> list[RecordedSpan]:
        """The spans of calls, in order of their start."""
        return [span for span in self.spans if span.name == "tool.execute"]

    def total(self, metric: str) -> Counter[Labels]:
        """Sum of a metric by its labels."""
        sums: Counter[Labels] = Counter()
        for name, value, labels in self.measured:
            if name == metric:
                sums[frozenset(labels.items())] += value  # type: ignore[assignment]
        return sums

    def values(self, metric: str) -> list[float]:
        """Each value of a metric, in order."""
        return [value for name, value, _ in self.measured if name == metric]


_listening: list[Recording] = []
_numbers = count(1)


class _Tracer(trace.NoOpTracer):
    def start_span(self, name: str, context: Context | None = None, *args: Any, **kwargs: Any) -> trace.Span:
        if not _listening:
            return trace.INVALID_SPAN
        span = RecordedSpan(name, trace.get_current_span(context), next(_numbers))
        _listening[-1].spans.append(span)
        return span

    @contextmanager
    def start_as_current_span(self, name: str, *args: Any, **kwargs: Any) -> Iterator[trace.Span]:  # type: ignore[override]
        flags = {key: kwargs[key] for key in ("record_exception", "set_status_on_exception") if key in kwargs}
        with trace.use_span(self.start_span(name), end_on_exit=True, **flags) as span:
            yield span


class _Counter(metrics.NoOpCounter):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def add(self, amount: float, attributes: Attributes = None, context: Context | None = None) -> None:
        _measure(self.name, amount, attributes)


class _Histogram(metrics.NoOpHistogram):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def record(self, amount: float, attributes: Attributes = None, context: Context | None = None) -> None:
        _measure(self.name, amount, attributes)


def _measure(name: str, amount: float, attributes: Attributes) -> None:
    if _listening:
        _listening[-1].measured.append((name, amount, dict(attributes or {})))


class _Meter(metrics.NoOpMeter):
    def create_counter(self, name: str, unit: str = "", description: str = "") -> metrics.Counter:
        return _Counter(name)

    def create_histogram(self, name: str, unit: str = "", description: str = "", **_: Any) -> metrics.Histogram:
        return _Histogram(name)


class _Tracers(trace.TracerProvider):
    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        return _Tracer()


class _Meters(metrics.MeterProvider):
    def get_meter(self, name: str, *args: Any, **kwargs: Any) -> metrics.Meter:
        return _Meter(name)


_installed = False


@contextmanager
def recorded() -> Iterator[Recording]:
    """Listen until the block ends."""
    global _installed  # noqa: PLW0603 - the providers belong to the process
    if not _installed:
        trace.set_tracer_provider(_Tracers())
        metrics.set_meter_provider(_Meters())
        _installed = True
    recording = Recording()
    _listening.append(recording)
    try:
        yield recording
    finally:
        _listening.remove(recording)
