"""The state of one invocation as it walks down the invoker's column, and the two ways it leaves early."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel

from agentic.contract.results import ErrorCode, Said, ToolResult
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.declarations import Tool
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import CallKey, Claim, Decision, Preflight
from agentic.services.tools.records import DecisionRecord


class Refused(Exception):
    """The call ends here with a stable code; nothing ran."""

    def __init__(self, code: ErrorCode, *, detail: str | None = None, said: Said | None = None) -> None:
        super().__init__(code)
        self.result = refusal(code, detail=detail, said=said)
        self.code = code


class Answered(Exception):
    """The journal holds the answer; nothing runs."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__("answered from the journal")
        self.result = result


@dataclass(kw_only=True, slots=True)
class Attempt:
    """What is known so far about one call. Fields appear in the order the column fills them."""

    call: ToolCall
    inv: ToolInvocation
    started_at: datetime
    deadline: float
    span_id: UUID = field(default_factory=uuid4)

    spec: ToolSpec | None = None
    tool: Tool | None = None
    arguments: dict[str, Any] | None = None
    arguments_text: str | None = None
    digest: str | None = None
    model: BaseModel | None = None
    key: CallKey | None = None
    pre: Preflight | None = None
    approval_id: UUID | None = None
    decision: Decision | None = None
    claim: Claim | None = None
    effect_may_have_left: bool = False
    prior_unknown: bool = False
    """An earlier attempt under this key may have had the effect."""
    attributes: dict[str, Any] = field(default_factory=dict)

    def decision_record(self) -> DecisionRecord | None:
        """The policy decision of this call, if it got that far."""
        if self.decision is None:
            return None
        return DecisionRecord(
            id=uuid4(),
            tool=self.call.tool,
            contract_hash=self.spec.contract_hash if self.spec else None,
            digest=self.digest,
            effect=self.decision.effect,
            rule_id=self.decision.rule_id,
            rule_version=self.decision.rule_version,
            reason=self.decision.reason,
            context_trust=self.inv.context_trust,
            proposal_id=self.call.proposal_id,
            approval_id=self.approval_id,
        )
