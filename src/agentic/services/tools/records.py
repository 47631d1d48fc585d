"""What a call leaves behind: spans, decisions, artifacts, usage. Plain values that a store writes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from agentic.contract.trust import Trust
from agentic.services.tools.call_events import CallEvent

SpanKind = Literal["run", "segment", "llm", "tool", "wait"]


class SpanStatus(StrEnum):
    """How a span closed."""

    OK = "ok"
    """Went its way; a pause for a person counts (D3)."""
    ERROR = "error"
    """Refused or failed, under its stable code."""
    UNKNOWN = "unknown"
    """May have had its effect."""
    LOST = "lost"
    """Its worker died; a later attempt took over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRecord:
    """One line of a run's tree. ``input`` and ``output`` are redacted, bounded JSON text (B2)."""

    id: UUID
    parent_id: UUID | None
    kind: SpanKind
    name: str
    started_at: datetime
    ended_at: datetime | None = None
    status: SpanStatus | None = None
    code: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    input: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionRecord:
    """One policy decision about one call."""

    id: UUID
    tool: str
    contract_hash: str | None
    digest: str | None
    effect: Literal["allow", "deny", "require_approval"]
    rule_id: str
    rule_version: int
    reason: str
    context_trust: Trust
    proposal_id: UUID | None = None
    approval_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactRecord:
    """What was too large to show, or what a handler saved; kept once (B1).

    Attributes:
        body: the bytes; ``None`` when ``place`` holds them, and ``sha256`` and ``size_bytes`` are then given.
        complete: ``False`` when even the capture stopped at its limit.
        place: where an object store holds the bytes; ``None`` for the row itself.
        sha256: in hex, of the bytes as they are kept; computed from ``body`` when empty.
    """

    id: UUID
    span_id: UUID
    trust: Trust
    body: bytes | None
    complete: bool
    media_type: str = "application/json"
    place: str | None = None
    sha256: str = ""
    size_bytes: int = 0

    def __post_init__(self) -> None:
        """Measure the bytes; refuse a record that has none, or two places."""
        if (self.body is None) is (self.place is None):
            raise ValueError("an artifact has its bytes either in its body or at a place")
        if self.body is not None:
            object.__setattr__(self, "sha256", hashlib.sha256(self.body).hexdigest())
            object.__setattr__(self, "size_bytes", len(self.body))


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageRecord:
    """One billable operation."""

    id: UUID
    kind: Literal["model", "tool", "job"]
    provider: str
    item: str
    quantity: Decimal
    unit: str
    cost: Decimal | None = None
    price_row: str | None = None
    """The price it was counted by; ``None`` when whoever was paid named the money."""
    span_id: UUID | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    ok: bool = True
    error: str | None = None
    estimated: bool = False
    """Nobody told what it cost: the handler worked it out, or it is counted at the tool's bound (ADR 0029)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobWait:
    """A provider's job that a call would rather wait for.

    Attributes:
        within_s: seconds after which it is answered of as it then stands.
    """

    job_id: UUID
    within_s: float


@dataclass(kw_only=True, slots=True)
class Trail:
    """Records of a segment that are written with its next append rather than one by one."""

    spans: list[SpanRecord] = field(default_factory=list)
    decisions: list[DecisionRecord] = field(default_factory=list)
    artifacts: list[ArtifactRecord] = field(default_factory=list)
    usage: list[UsageRecord] = field(default_factory=list)
    events: list[CallEvent] = field(default_factory=list)
    """What was told of calls since the last append, in order; for a store that keeps a run's events."""
    tool_calls: int = 0
    """Calls since the last append that count against the run's ceiling; a replay does not."""
    model_requests: int = 0
    job_waits: dict[str, JobWait] = field(default_factory=dict)
    """Jobs that calls answered of before they had ended, by the provider's call id; a paused call of an agent waits for them."""
    evidence: dict[str, str] = field(default_factory=dict)
    """What calls observed, as digests by the provider's call id; for the breakers of the run, never written from here."""

    def take(self) -> "Trail":
        """Hand over what was gathered and start anew."""
        taken = Trail(
            spans=self.spans, decisions=self.decisions, artifacts=self.artifacts, usage=self.usage, events=self.events,
            tool_calls=self.tool_calls, model_requests=self.model_requests,
        )  # fmt: skip
        self.spans, self.decisions, self.artifacts, self.usage, self.events = [], [], [], [], []
        self.tool_calls = self.model_requests = 0
        return taken

    def put_back(self, taken: "Trail") -> None:
        """Undo a ``take`` whose append did not happen."""
        self.spans[:0], self.decisions[:0] = taken.spans, taken.decisions
        self.artifacts[:0], self.usage[:0] = taken.artifacts, taken.usage
        self.events[:0] = taken.events
        self.tool_calls += taken.tool_calls
        self.model_requests += taken.model_requests
