"""The stages of one invocation, each holding what the step before it made sure of, and the two ways a call leaves early.

``Attempt`` is what the tree will say about the call; ``Prepared``, ``Decided`` and ``Claimed`` are what the next step may rely on.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel

from agentic.contract.json_types import JsonObject
from agentic.contract.results import ErrorCode, Said, ToolResult, ToolStop
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.connections import Connection
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import CallKey, Claim, CoveringApproval, Decision, JournalRow, Preflight
from agentic.services.tools.records import DecisionRecord
from agentic.services.tools.redaction import secret_values


class Refused(Exception):
    """The call ends here with a stable code; nothing ran."""

    def __init__(
        self, code: ErrorCode, *, detail: str | None = None, said: Said | None = None, stop: ToolStop | None = None
    ) -> None:
        super().__init__(code)
        self.result = refusal(code, detail=detail, said=said)
        if stop is not None:
            reason = stop if stop == "budget_exhausted" else None
            meta = self.result.meta.model_copy(update={"partial_reason": reason})
            self.result = self.result.model_copy(update={"stop": stop, "meta": meta})
        self.code = code


class Answered(Exception):
    """The journal holds the answer; nothing runs."""

    def __init__(self, result: ToolResult, *, recorded: bool = False) -> None:
        super().__init__("answered from the journal")
        self.result = result
        self.recorded = recorded
        """The tree holds this answer already: the span of a lost worker was closed with it."""


@dataclass(kw_only=True, slots=True)
class Attempt:
    """A call as the tree shows it: what is known of it so far."""

    call: ToolCall
    inv: ToolInvocation
    spec: ToolSpec | None
    started_at: datetime
    deadline: float
    span_id: UUID = field(default_factory=uuid4)
    arguments: JsonObject | None = None
    digest: str | None = None
    decision: Decision | None = None
    approval: CoveringApproval | None = None
    """The approval it runs under."""
    connection: Connection | None = None
    """The account it uses, once that is known."""
    claim: Claim | None = None
    stale: "Stale | None" = None
    """A dead worker's claim under which the effect may have happened."""
    attributes: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Exact secret values this call has used so far; its rows hold none of them (B2)."""
    effect_sent: bool = False
    """This worker marked the claim: bytes may have left since it was taken."""
    ended: ToolResult | None = None
    """What its row was closed with, when the handler's own error goes up to the run in place of an answer."""

    @property
    def approval_id(self) -> UUID | None:
        """Id of the approval it runs under."""
        return None if self.approval is None else self.approval.id

    @property
    def effect_may_have_left(self) -> bool:
        """Whether the claim's watermark is set, as far as this process knows."""
        return self.effect_sent or (self.claim is not None and self.claim.effect_sent_at is not None)

    @property
    def source_trust(self) -> Trust:
        """How far the texts of the arguments may be believed, whoever wrote them (ADR 0012)."""
        context = self.inv.context_trust
        return context if self.call.origin == "model" else context.lowered_by(self.call.argument_trust)

    def used(self, secrets: object) -> None:
        """Remember what a handler, a preview or a probe of this call used, in whatever form it was named."""
        self.secrets = tuple(dict.fromkeys((*self.secrets, *secret_values(secrets))))

    def decision_record(self) -> DecisionRecord | None:
        """The policy decision of this call, if it got that far."""
        return None if self.decision is None else self.record_of(self.decision)

    def record_of(self, decision: Decision) -> DecisionRecord:
        """A decision about this call, as it is stored."""
        return DecisionRecord(
            id=uuid4(),
            tool=self.call.tool,
            contract_hash=self.spec.contract_hash if self.spec else None,
            digest=self.digest,
            effect=decision.effect,
            rule_id=decision.rule_id,
            rule_version=decision.rule_version,
            reason=decision.reason,
            context_trust=self.inv.context_trust,
            proposal_id=self.call.proposal_id,
            approval_id=self.approval_id,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """Step 1 is done: one value of the arguments, its digest, its key."""

    at: Attempt
    spec: ToolSpec
    tool: Tool | None
    """The live tool, if this deployment still has it."""
    arguments: JsonObject
    arguments_text: str
    digest: str
    model: BaseModel | None
    """The arguments as the live tool's own type."""
    key: CallKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Stale:
    """A claim of a dead worker, and the call that found it."""

    call: Prepared
    row: JournalRow


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """Steps 2 to 7 are done: this call may run."""

    call: Prepared
    tool: Tool
    model: BaseModel
    pre: Preflight
    decision: Decision


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """Step 8 is done: this worker holds the claim."""

    call: Prepared
    tool: Tool | None
    model: BaseModel | None
    claim: Claim
    prior_unknown: bool
    """An earlier attempt under this key may have had the effect."""
