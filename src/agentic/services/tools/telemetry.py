"""Metrics of tools, for whoever installs a meter provider; without one every recording is a no-op (docs/telemetry.md).

No label names a tenant, a run or a person, and no label's value is written by a model: rows answer for those.
"""

from opentelemetry import metrics

from agentic.services.tools.call_events import CallEvent

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Buckets of a duration, up to the longest a tool may take; the default ones are made for milliseconds."""
BYTES = (64, 256, 1024, 4096, 8192, 16384, 24576, 32768)
"""Buckets of an answer's size, up to what is ever shown of one."""

_meter = metrics.get_meter("agentic")
_calls = _meter.create_counter("tool_calls_total", description="Calls that were answered, replays among them.")
_failures = _meter.create_counter("tool_failures_total", description="Calls that did not succeed, by reason.")
_duration = _meter.create_histogram(
    "tool_duration_seconds",
    unit="s",
    description="From proposal to answer, of calls whose handler ran.",
    explicit_bucket_boundaries_advisory=SECONDS,
)
_output = _meter.create_histogram(
    "tool_output_bytes",
    unit="By",
    description="What the caller got of results.",
    explicit_bucket_boundaries_advisory=BYTES,
)
_truncations = _meter.create_counter("tool_truncations_total", description="Results that were cut to size.")
_uncertain = _meter.create_counter("tool_uncertain_total", description="Calls that an operator has to look at.")
_mcp_requests = _meter.create_counter("mcp_requests_total", description="Round trips to remote tool servers.")
_mcp_connect_failures = _meter.create_counter(
    "mcp_connect_failures_total", description="Remote tool servers that could not be reached or opened."
)
_mcp_refused = _meter.create_counter(
    "mcp_refused_requests_total", description="What remote tool servers asked of us and were refused."
)


def count_end(event: CallEvent, *, ran: bool, replayed: bool) -> None:
    """Count a call that ended, once.

    Args:
        event: as it was told, with its outcome.
        ran: its handler was started by this invocation; nothing else has a duration.
        replayed: the journal answered. It counts as a call, and as nothing else: it failed, was cut or became uncertain once.
    """
    labels = {"name": event.tool_name, "source": event.tool_source}
    _calls.add(1, {**labels, "outcome_status": event.outcome_status or "unknown"})
    if replayed:
        return
    if ran and event.duration_ms is not None:
        _duration.record(event.duration_ms / 1000, labels)
    if event.outcome_status == "succeeded":
        _output.record(event.output_bytes or 0, labels)
    else:
        _failures.add(1, {**labels, "reason_code": event.reason_code or "unknown"})
    if event.truncated:
        _truncations.add(1, labels)
    if event.outcome_status == "uncertain":
        count_uncertain(event.tool_name, event.tool_source)


def count_uncertain(name: str, source: str, *, calls: int = 1) -> None:
    """Count calls whose review was opened, by a call itself or by the sweep."""
    _uncertain.add(calls, {"name": name, "source": source})


def count_mcp_request(*, server: str, method: str, outcome: str) -> None:
    """Count one round trip to a remote server.

    Args:
        server: its name in the configuration, not its address.
        method: of the protocol, never a tool's name.
        outcome: ``ok`` or a stable reason code.
    """
    _mcp_requests.add(1, {"server": server, "method": method, "outcome": outcome})


def count_mcp_connect_failure(*, server: str, reason_code: str) -> None:
    """Count a remote server that could not be used. ``reason_code`` is ours, never the server's words."""
    _mcp_connect_failures.add(1, {"server": server, "reason_code": reason_code})


def count_mcp_refused(*, server: str, method: str) -> None:
    """Count one request of a remote server that was refused: a model's answer, folders, a form.

    Args:
        server: its name in the configuration, not its address.
        method: of the protocol, or ``other``.
    """
    _mcp_refused.add(1, {"server": server, "method": method})
