"""What a run needs from an agent framework, and what it gives it. The only meeting point of the two.

The durable state of a run is its messages and its open proposals (ADR 0003). A framework adapter turns messages into one more
turn of the model and back into messages; it stores nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import Leave
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.runs.models import CallFault, MessageRole, ProposedCall, RunMessage
from agentic.services.tools.models import FrozenTool


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the model reads for one call."""

    text: str
    trust: Trust


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAttempt:
    """One request to a model provider, whatever became of it."""

    model: str
    provider: str
    ok: bool
    started_at: datetime
    duration_s: float
    input_tokens: int = 0
    """All of them, those read from the provider's cache included."""
    output_tokens: int = 0
    """All of them, those of its reasoning included."""
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: Decimal | None = None
    """Dollars, when the provider said; prices count otherwise."""
    error: str | None = None
    """Class and bounded, redacted text of the failure."""


class TurnHooks(Protocol):
    """What the run does while the framework's loop is inside a turn. All raise ``SegmentAbort`` to stop it."""

    async def before_request(self, new: Sequence[RunMessage]) -> bool:
        """Called before each provider request with the messages that are new since the last call: the checkpoint.

        Appends them, and stops the segment when a cap, the slice, a cancellation, a lost lease or a breaker says so.

        Returns:
            Whether this request is for an answer only: the model is shown the tools, may choose none of them, and is told to
            answer from what it has. What it is told is no part of the log (ADR 0028).
        """
        ...

    async def answered(self, assistant: RunMessage, calls: Sequence[ProposedCall]) -> None:
        """Called when an answer with calls to run inline is complete and none of its tools has run: stores it (J8).

        Args:
            assistant: the answer.
            calls: all of its calls, those that do not run inline as well.
        """
        ...

    async def read(self, call: ProposedCall) -> Answer:
        """Run one inline read through the invoker."""
        ...

    def said(self, text: str) -> None:
        """Take the next visible words of the answer under way, never its reasoning or a call. Returns at once and raises nothing."""
        ...

    def attempted(self, attempt: ModelAttempt) -> None:
        """Record one provider attempt, failed ones included (M1)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What the framework needs for the next turn."""

    definition: AgentDefinition
    tools: Sequence[FrozenTool]
    messages: Sequence[RunMessage]
    """The whole log, in the order it was appended; the adapter renders results behind their calls."""
    leave: Leave = field(default_factory=Leave)
    """Asked when the model's answer is no longer waited for: a request under way is cut off, and the turn raises its stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnPaused:
    """The turn ended with calls to drain."""

    new: Sequence[RunMessage]
    """Messages not yet given to a hook."""
    calls: Sequence[ProposedCall]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnCompleted:
    """The model gave its final answer."""

    new: Sequence[RunMessage]
    text: str
    cut_off: bool = False
    """The provider stopped before the answer was whole."""


FailureCode = Literal[
    "model_unavailable",
    "model_key_refused",
    "model_not_permitted",
    "model_not_found",
    "model_quota_spent",
    "context_too_long",
    "model_refused",
    "model_error",
]
"""``model_unavailable`` may be tried again; the others will not mend by themselves (ADR 0024)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFailed:
    """The provider failed; nothing of the turn is kept beyond what the hooks stored."""

    code: FailureCode
    message: str
    """What to do about it, then what the provider said, redacted."""
    retry_after_s: float | None = None


TurnEnd = TurnPaused | TurnCompleted | TurnFailed


class AgentLoop(Protocol):
    """An agent framework, as a run sees it."""

    @property
    def format(self) -> str:
        """Name and version of the message format, stored with every message."""
        ...

    def user_message(self, text: str) -> RunMessage:
        """The message that starts a run."""
        ...

    def quoted(self, role: Literal["user", "assistant"], text: str, trust: Trust) -> RunMessage:
        """A new message of these words: what an earlier run said, or a note of the platform, under its own label."""
        ...

    def tool_message(self, call: ProposedCall, answer: Answer) -> RunMessage:
        """The answer of one drained call, as the framework's own tool message."""
        ...

    def open_calls(self, messages: Sequence[RunMessage], tools: Sequence[FrozenTool]) -> list[ProposedCall]:
        """The calls of the last assistant message that no tool message answers, in the model's order. Pure."""
        ...

    def text_of(self, message: RunMessage) -> str:
        """The readable text of a message, for people."""
        ...

    async def turn(self, turn: Turn, hooks: TurnHooks) -> TurnEnd:
        """Ask the model, run inline reads through the hooks, and stop at a pause, an answer or a failure."""
        ...


__all__ = [
    "AgentLoop",
    "Answer",
    "CallFault",
    "FailureCode",
    "MessageRole",
    "ModelAttempt",
    "ProposedCall",
    "RunMessage",
    "Turn",
    "TurnCompleted",
    "TurnEnd",
    "TurnFailed",
    "TurnHooks",
    "TurnPaused",
]
