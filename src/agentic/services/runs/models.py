"""What a run is to the store: its row as its leader sees it, its messages, its proposals, its lease."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal, Inexact
from typing import Any, Literal
from uuid import UUID, uuid4

from agentic.contract.principal import RunCeilings
from agentic.contract.trust import Trust
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.records import Trail

MessageRole = Literal["user", "assistant", "tool"]
CallFault = Literal["cut_off", "unknown_tool"]
MAX_DEPTH = 5
"""How many generations of children a run may have below it."""
RunState = Literal["queued", "running", "parked", "succeeded", "failed", "cancelled"]
_EXACT = Context(prec=400, traps=[Inexact])
"""Python's own context rounds at 28 digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMessage:
    """One message of a run's append-only log, in the framework's own bytes."""

    id: str
    """Unique in the run; an append of a known id does nothing."""
    role: MessageRole
    body: bytes
    """The framework's message as UTF-8 JSON text, opaque to everybody else."""
    trust: Trust


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedCall:
    """One call of an assistant message that has no answer yet."""

    ordinal: int
    """Position in the assistant message, from 0."""
    model_call_id: str
    """Unique over the run's history."""
    model_name: str
    """The tool name as the model wrote it."""
    tool: str
    """Platform name; ``model_name`` itself when no tool has it."""
    arguments_text: str | None
    """The model's raw text."""
    fault: CallFault | None = None
    """Set when the call must not run: the answer was cut off, or nothing has that name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A stored call of a pause (J8)."""

    id: UUID
    turn: int
    call: ProposedCall


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """What starting a run stores, at once."""

    id: UUID = field(default_factory=uuid4)
    organization_id: UUID
    user_id: UUID | None
    request_key: str
    request_digest: str
    lane: str
    definition_name: str
    definition: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    """(name, contract_hash, mode) of each frozen tool."""
    contracts: Sequence[ToolSpec]
    ceilings: RunCeilings
    message: RunMessage
    """The user's words."""
    history: Sequence[RunMessage] = ()
    """What goes before them in the log: earlier runs of the session."""
    format: str
    deadline_s: float
    session_id: str | None = None
    parent_run_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parent:
    """A run that another one is started by."""

    run_id: UUID
    user_id: UUID | None
    depth: int
    tools: frozenset[str]
    """What it was shown and still has a grant of."""
    state: RunState
    cancelled: bool
    overdue: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierRun:
    """One exchange of a session that has ended with an answer."""

    run_id: UUID
    words: RunMessage
    """The user's words as the run stored them."""
    format: str
    """Of ``words``."""
    answer: str
    answer_trust: Trust
    """The lowest label the run's context has held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSoFar:
    """What a session's ended runs left."""

    newest: Sequence[EarlierRun]
    """The newest first, at most as many as were asked for."""
    answered: int
    """How many there are."""
    uncertain: Sequence[str]
    """Tools with calls of which nobody knows whether they happened."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """The run a start made, or the one an earlier start with the same key made."""

    run_id: UUID
    created: bool
    nudge: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """The right to lead a run, until somebody else's take raises the fence."""

    organization_id: UUID
    run_id: UUID
    fence: int
    wake_seq: int
    """As the take found it; a wake-up since then leaves a nudge behind when the run is parked or released."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What was spent and is held against a bound, in dollars."""

    spent: Decimal
    """The sum of usage lines."""
    held: Decimal
    """For calls that have not ended, or whose outcome nobody knows."""
    limit: Decimal

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return _EXACT.add(self.spent, self.held) >= self.limit


@dataclass(frozen=True, kw_only=True, slots=True)
class Unpriced:
    """A model request that reported no cost and that no price covers, in a tree whose money is bounded."""

    provider: str
    item: str
    """The model's id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewed:
    """The lease is still ours."""

    cancelled: bool
    """A person asked the run to stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LedRun:
    """A run whose lease was just taken."""

    lease: Lease
    user_id: UUID | None
    root_run_id: UUID
    lane: str
    definition_name: str
    definition: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    ceilings: Mapping[str, Any]
    context_trust: Trust
    breakers: Mapping[str, Any]
    """The counts of the run's breakers, as an append wrote them."""
    attempts_without_progress: int
    provider_failures: int
    """How often in a row the model's provider was down."""
    cancelled: bool
    overdue: bool
    """The calendar deadline has passed."""
    segment_id: UUID
    """The span of this segment, opened with the take."""
    leased_at: datetime
    tree: Spending | None = None
    """Of the run's tree, without what the run itself holds; ``None`` when no ceiling bounds its money."""
    day: Spending | None = None
    """Of the organization since midnight UTC, without what the run itself holds; ``None`` when it has no limit."""
    unpriced: Unpriced | None = None
    """A request of the tree that nobody can count; looked for only where money is bounded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Append:
    """What a segment writes at a checkpoint."""

    format: str
    messages: Sequence[RunMessage] = ()
    proposals: Sequence[Proposal] = ()
    answered: Sequence[UUID] = ()
    """Proposals whose answers are among the messages."""
    breakers: Mapping[str, Any] | None = None
    """The counts of the run's breakers; ``None`` when they have not changed."""
    words: Sequence[Mapping[str, Any]] = ()
    """The last of what the model said and nobody was told yet, as data of events ``text``."""
    trail: Trail = field(default_factory=Trail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """The run's counts after an append."""

    model_requests: int
    tool_calls: int
    active_ms: int
    context_trust: Trust
    cancelled: bool
    tree: Spending | None = None
    """Of the run's tree; ``None`` when no ceiling bounds its money."""
    unpriced: Unpriced | None = None
    """Among what this append wrote; looked for only where money is bounded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnd:
    """The terminal state of a run, and why (W4)."""

    state: Literal["succeeded", "failed", "cancelled"]
    answer: str | None = None
    partial_reason: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A transition that happened, and the nudge it left behind, if any."""

    nudge: UUID | None = None
    due_at: datetime | None = None
    """When a released run comes back, by the database's clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunQuery:
    """Which runs a listing shows; what is ``None`` holds for all."""

    states: Sequence[RunState] | None = None
    agent: str | None = None
    """Name of the definition."""
    session_id: str | None = None
    lane: str | None = None
    root_run_id: UUID | None = None
    """Of this run's tree, itself included."""
    created_after: datetime | None = None
    """At this time or later."""
    created_before: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A run's place in a listing, which is ordered by when runs were made."""

    created_at: datetime
    run_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPage:
    """Some runs of a listing, the newest first."""

    rows: Sequence[Mapping[str, Any]]
    behind: Place | None
    """Where the next page begins; ``None`` when there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTree:
    """Everything a run can say about itself, for people and for the API."""

    run: Mapping[str, Any]
    spans: Sequence[Mapping[str, Any]]
    decisions: Sequence[Mapping[str, Any]]
    approvals: Sequence[Mapping[str, Any]]
    effects: Sequence[Mapping[str, Any]]
    uncertain: Sequence[Mapping[str, Any]]
    cost: Mapping[str, Any]
    waits: Sequence[Mapping[str, Any]] = ()
    """What a parked run waits for, in the order of its calls."""
    artifacts: Sequence[Mapping[str, Any]] = ()
    """What was too large to show, without its bytes."""
    family: Sequence[Mapping[str, Any]] = ()
    """Every run of the tree this one belongs to, the root first."""
