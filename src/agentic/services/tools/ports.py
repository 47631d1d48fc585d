"""What the invoker needs from others: the call ledger (Postgres), the policy, and the handlers' protocol.

The ledger's statements are fenced: one that matches nothing means somebody else moved first, and says so as ``None`` or ``False``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.principal import Role, RunCeilings
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.services.tools.metering import Hold, OverBudget
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects, ToolSpec, Watermark
from agentic.services.tools.records import ArtifactRecord, DecisionRecord, SpanRecord, UsageRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class CallKey:
    """Where a call stands in the journal, derived once (ADR 0007)."""

    organization_id: UUID
    run_id: UUID
    scope: str
    key: str
    request_hash: str
    """Digest of the arguments and the contract hash: what ``conflict`` compares."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalRow:
    """A claim as the preflight found it."""

    state: Literal["processing", "completed", "uncertain"]
    request_hash: str
    epoch: int
    attempt: int
    lease_live: bool
    lease_expires_at: datetime | None
    idempotency_class: IdempotencyClass
    effect_sent_at: datetime | None
    vendor_key_ttl_s: int | None
    output: bytes | None
    span_id: UUID | None
    connection_id: UUID | None = None
    """The account it was claimed for."""

    def claim(self, key: CallKey, *, tool: str, span_id: UUID) -> "Claim":
        """This row as the claim of whoever settles it. ``span_id`` stands in when the dead worker's span is not known."""
        return Claim(
            key=key,
            tool=tool,
            epoch=self.epoch,
            attempt=self.attempt,
            repeats=0,
            lease_expires_at=self.lease_expires_at or self.effect_sent_at or datetime.min.replace(tzinfo=UTC),
            effect_sent_at=self.effect_sent_at,
            span_id=self.span_id or span_id,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CoveringApproval:
    """The newest approval that covers a call, its status by database time."""

    id: UUID
    status: Literal["pending", "approved", "rejected", "expired", "cancelled"]
    decided_by: UUID | None
    decider_role: Role | None
    """The decider's role now; authority is checked again at the run (A5, ADR 0011)."""
    comment: str | None
    connection_id: UUID | None = None
    """The account that the person was shown; ``None`` for a call that acts in none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RulesVersion:
    """How often the rules that count for an organization have changed; equal versions mean equal rules."""

    platform: int = 0
    organization: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Preflight:
    """Everything a decision needs, read by one statement."""

    now: datetime
    fence: int
    lease_live: bool
    cancelled: bool
    context_trust: Trust
    tool_calls: int
    ceilings: RunCeilings
    journal: JournalRow | None
    approval: CoveringApproval | None
    tool_enabled: bool
    """Neither switched off in the organization, nor of a version that is revoked for this run."""
    granted: bool
    member: bool
    """Whether the run's user still belongs to the organization; ``True`` for a run without a user."""
    run_kind: str = "agent"
    rules_version: RulesVersion = RulesVersion()


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimRequest:
    """COMMIT 1: claim, decision, watermark and the open span, fenced on the run's lease."""

    key: CallKey
    spec: ToolSpec
    digest: str
    arguments_text: str
    seen: JournalRow | None
    """The row the preflight found, to be taken over; ``None`` when there was none."""
    lease_s: float
    watermark: Watermark
    fence: int
    origin_trust: Trust
    approval_id: UUID | None
    proposal_id: UUID | None
    connection_id: UUID | None
    span: SpanRecord
    decision: DecisionRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A claim this worker holds. Epoch and attempt together are its fence (J5)."""

    key: CallKey
    tool: str
    epoch: int
    attempt: int
    repeats: int
    lease_expires_at: datetime
    effect_sent_at: datetime | None
    span_id: UUID
    hold: Hold | None = None
    """The money held for a metered call (M2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEnd:
    """COMMIT 2: what became of a claimed call."""

    outcome_status: Literal["ok", "error"]
    outcome_code: str | None
    output: bytes
    span: SpanRecord
    proposal_id: UUID | None
    usage: Sequence[UsageRecord] = ()
    hold: Literal["settled", "released"] | None = None
    """What becomes of the money held for a metered call; ``None`` leaves it held, and for a call that holds none."""
    artifact_id: UUID | None = None
    """Where the whole of the answer is kept."""
    artifacts: Sequence[ArtifactRecord] = ()
    arguments_text: str | None = None
    """The arguments without the secrets that the handler turned out to use; ``None`` when it named none."""


class CallLedger(Protocol):
    """The invoker's window on the database."""

    async def preflight(
        self, key: CallKey, *, inv: ToolInvocation, tool: str, version: int, contract_hash: str, digest: str
    ) -> Preflight | None:
        """Read what the decision needs; ``None`` when the run does not exist in this organization.

        Args:
            tool: its live state counts, and the life of this ``version`` of it.
            version: as the run froze it.
        """
        ...

    async def refuse(
        self,
        *,
        inv: ToolInvocation,
        span: SpanRecord,
        decision: DecisionRecord | None,
        proposal_id: UUID | None,
        code: str,
    ) -> None:
        """Commit a refused call at once: span, decision, proposal done."""
        ...

    async def claim(self, request: ClaimRequest, *, inv: ToolInvocation) -> Claim | None:
        """COMMIT 1. ``None`` when the run's lease is not ours or the key moved since the preflight."""
        ...

    async def mark_effect_sent(self, claim: Claim) -> bool:
        """Set the watermark of a claim that is still ours."""
        ...

    async def count_repeat(self, claim: Claim) -> bool:
        """Count one in-place repeat of a claim that is still ours."""
        ...

    async def complete(self, claim: Claim, end: CallEnd) -> bool:
        """Store the answer for good."""
        ...

    async def release(self, claim: Claim, end: CallEnd) -> bool:
        """Forget the claim: nothing happened. The next claim of the key has a new epoch."""
        ...

    async def hold(self, claim: Claim, end: CallEnd) -> bool:
        """Keep the claim until its lease ends; nobody knows yet."""
        ...

    async def uncertain(self, claim: Claim, end: CallEnd, *, reason: str) -> bool:
        """Nobody will know: hand the call to an operator."""
        ...


class MeterLedger(Protocol):
    """The meter's window on the database. Who asks what a tree has left waits for those who asked before (M2)."""

    async def claim_metered(
        self, request: ClaimRequest, *, bound: Decimal, inv: ToolInvocation
    ) -> Claim | OverBudget | None:
        """COMMIT 1 with the bound held for the claim's epoch; ``None`` as ``CallLedger.claim`` says it.

        A claim that is taken over has its hold already and needs no second one.
        """
        ...

    async def hold_read(
        self, *, tool: str, span_id: UUID, bound: Decimal, lease_s: float, inv: ToolInvocation
    ) -> Hold | OverBudget | None:
        """Hold the bound of a read, once however often it is asked; ``None`` when the run's lease is not ours."""
        ...

    async def end_read(
        self,
        *,
        span_id: UUID,
        state: Literal["settled", "released"],
        usage: Sequence[UsageRecord],
        organization_id: UUID,
    ) -> bool:
        """Put the lines of a read in the place of its hold; ``True`` also when an earlier try arrived after all.

        ``False``: its lease was over and it has been counted as spent.
        """
        ...

    async def hold_of(self, *, tool: str, bound: Decimal, organization_id: UUID) -> Hold:
        """A hold that stands for a claim found by its row, with the prices of now."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyQuestion:
    """What the policy decides on: one call, as it would run now."""

    spec: ToolSpec
    arguments: Mapping[str, Any]
    granted: bool
    member: bool
    context_trust: Trust
    """Low-water mark of the run's whole context; rules know it as ``origin_trust`` (ADR 0012)."""
    environment: Literal["live", "frozen"]
    now: datetime
    """Database time of the preflight."""
    run_kind: str
    rules_version: RulesVersion
    """As the preflight saw it; a policy that keeps rules reads them again when it differs."""
    argument_trust: Trust
    """Who the arguments come from: external when a model made them, else the caller's label (ADR 0012)."""
    context: CallContext
    """What fact resolvers see: the principal, the run, the call's deadline."""
    model: BaseModel
    """The arguments as the live tool's own type, for fact resolvers."""

    @property
    def tool(self) -> str:
        """Platform name of the tool."""
        return self.spec.name

    @property
    def side_effects(self) -> SideEffects:
        """What the tool does to the world."""
        return self.spec.side_effects

    @property
    def risk(self) -> Risk:
        """How much a wrong call costs."""
        return self.spec.risk


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What the policy says about one call."""

    effect: Literal["allow", "deny", "require_approval"]
    rule_id: str
    rule_version: int
    reason: str
    four_eyes: bool = False
    """Whoever the run acts for may not be the one who approves (A5)."""


class FactFinder(Protocol):
    """Finds a fact of a call out for its preview, read-only and within the call's deadline."""

    async def __call__(self, name: str, ctx: CallContext, args: BaseModel) -> Any:
        """The fact as JSON data; ``None`` when it cannot be told."""
        ...


async def no_facts(name: str, ctx: CallContext, args: BaseModel) -> Any:
    """Of a deployment that finds nothing out."""
    return None


class PolicyPort(Protocol):
    """The action checkpoint. Raises when it cannot be reached: nothing fails open (D4)."""

    async def decide(self, question: PolicyQuestion) -> Decision:
        """Decide one call."""
        ...


class ToolHandler(Protocol):
    """The code behind a tool. Returns its answer or raises; constructs no ``ToolError``."""

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        """Do what the tool does."""
        ...


class Previewer(Protocol):
    """Renders the line a person reads before deciding. Never writes, sends or spends (A6)."""

    async def __call__(self, ctx: CallContext, args: BaseModel) -> str:
        """One line for the person who decides."""
        ...


class Probe(Protocol):
    """Asks the world, read-only, whether an effect happened: its answer when it did, ``None`` when it did not.

    Raises when it cannot tell.
    """

    async def __call__(self, ctx: CallContext, args: BaseModel) -> Any:
        """The answer the effect had, or ``None``."""
        ...
