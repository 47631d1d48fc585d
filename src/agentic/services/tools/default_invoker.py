"""The invoker: one column, a step a line, in the order of STATE "One call".

Each step reads what the ones before it learned and either goes on, ends the call with a stable code, answers it from the journal, or
raises what the caller must act on. Nothing before COMMIT 1 touches the world; nothing after it is undone.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import assert_never

from opentelemetry.trace import Span
from pydantic import ValidationError

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.canonical import canonical, digest
from agentic.contract.clock import Clock
from agentic.contract.errors import ApprovalRequired, ClaimInFlight, LeaseLost, NotFound, RunEnded
from agentic.contract.principal import Role
from agentic.contract.results import ErrorCode, Said, ToolResult
from agentic.services.tools.arguments import InvalidArguments, parse_arguments
from agentic.services.tools.attempt import Answered, Attempt, Refused
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.endings import Found, VendorWindow, found
from agentic.services.tools.execution import Execution
from agentic.services.tools.keys import call_key
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import CallLedger, Claim, ClaimRequest, Decision, JournalRow, PolicyPort, PolicyQuestion
from agentic.services.tools.previewing import preview_line
from agentic.services.tools.registry import ToolRegistry
from agentic.services.tools.tracing import closed_span, describe, open_span, tool_span

_CLAIM_ROUNDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class InvokerSettings:
    """Bounds of the invoker."""

    claim_grace_s: float = 30
    """A claim's lease is the call's timeout plus this; never renewed."""


class DefaultToolInvoker:
    """Decides, runs at most once, bounds. See ``ToolInvoker`` for the promise."""

    def __init__(
        self,
        *,
        registry: ToolRegistry,
        ledger: CallLedger,
        policy: PolicyPort,
        clock: Clock,
        settings: InvokerSettings | None = None,
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._policy = policy
        self._clock = clock
        self._settings = settings or InvokerSettings()
        self._execution = Execution(ledger=ledger, clock=clock)

    async def invoke(self, call: ToolCall, inv: ToolInvocation) -> ToolResult:
        at = self._begin(call, inv)
        with tool_span(at) as span:
            try:
                await self._decide(at)
                if not _spec(at).journaled:
                    return self._told(span, at, await self._execution.read(at))
                await self._claim(at)
                return self._told(span, at, await self._execution.effect(at))
            except Answered as answered:
                return self._told(span, at, self._replayed(at, answered.result))
            except Refused as refused:
                return self._told(span, at, await self._refuse(at, refused))
            except ApprovalRequired:
                self._paused(at)
                raise

    async def must_ask(self, call: ToolCall, inv: ToolInvocation) -> ApprovalRequest | None:
        at = self._begin(call, inv)
        try:
            await self._decide(at)
        except ApprovalRequired as asked:
            self._paused(at)
            return asked.request
        except (Answered, Refused, ClaimInFlight):
            return None  # decided again, live, when its turn comes
        return None

    # -- the column ---------------------------------------------------------------------------------------------------------------

    async def _decide(self, at: Attempt) -> None:
        self._contract_and_arguments(at)  # 1
        await self._preflight(at)  # 2
        self._run_is_ours(at)
        await self._journal(at)  # 3
        self._ceilings(at)
        self._live_state(at)  # 4
        self._approval(at)  # 5
        await self._ask_policy(at)  # 6

    def _begin(self, call: ToolCall, inv: ToolInvocation) -> Attempt:
        frozen = inv.tools.get(call.tool)
        timeout_s = frozen.spec.timeout_s if frozen is not None else 1.0
        return Attempt(
            call=call,
            inv=inv,
            spec=frozen.spec if frozen is not None else None,
            tool=self._registry.get(call.tool),
            started_at=self._clock.now(),
            deadline=self._clock.monotonic() + timeout_s,
        )

    def _contract_and_arguments(self, at: Attempt) -> None:
        if at.spec is None:
            raise Refused(ErrorCode.UNKNOWN_TOOL, detail=_close_names(at))
        if at.call.fault is not None:
            raise Refused(ErrorCode.INVALID_INPUT, detail="The call was cut off before it was whole; propose it again.")
        try:
            at.arguments = parse_arguments(at.call.arguments_text, at.spec.input_schema)
            if at.tool is not None:
                at.model = at.tool.input_model.model_validate_json(canonical(at.arguments))
        except InvalidArguments as error:
            raise Refused(ErrorCode.INVALID_INPUT, detail=str(error)) from error
        except ValidationError as error:
            raise Refused(ErrorCode.INVALID_INPUT, detail=_places(error)) from error
        if at.spec.batch_argument is not None and at.spec.max_batch_size is not None:
            items = at.arguments.get(at.spec.batch_argument) or []
            if len(items) > at.spec.max_batch_size:
                raise Refused(ErrorCode.BATCH_TOO_LARGE, detail=f"/{at.spec.batch_argument} takes at most {at.spec.max_batch_size} items.")
        at.arguments_text = canonical(at.arguments).decode()
        at.digest = digest(at.arguments)
        at.key = call_key(
            organization_id=at.inv.organization_id,
            run_id=at.inv.run_id,
            tool=at.spec.name,
            step_path=at.call.step_path,
            arguments_digest=at.digest,
            contract_hash=at.spec.contract_hash,
        )

    async def _preflight(self, at: Attempt) -> None:
        assert at.key is not None and at.digest is not None
        spec = _spec(at)
        at.pre = await self._ledger.preflight(at.key, inv=at.inv, tool=spec.name, contract_hash=spec.contract_hash, digest=at.digest)
        if at.pre is None:
            raise NotFound(f"run {at.inv.run_id} does not exist in this organization")

    def _run_is_ours(self, at: Attempt) -> None:
        assert at.pre is not None
        if at.pre.fence != at.inv.fence or not at.pre.lease_live:
            raise LeaseLost(f"run {at.inv.run_id} is led by another worker")
        if at.pre.cancelled:
            raise RunEnded(status="cancelled", code="cancelled", message=f"run {at.inv.run_id} is being cancelled")

    async def _journal(self, at: Attempt) -> None:
        assert at.pre is not None and at.key is not None
        spec = _spec(at)
        if not spec.journaled:
            return
        row = at.pre.journal
        what = found(row, request_hash=at.key.request_hash, now=at.pre.now, window=VendorWindow(call_timeout_s=spec.timeout_s))
        match what:
            case Found.NOTHING:
                return
            case Found.TAKE_OVER:
                assert row is not None
                at.prior_unknown = row.effect_sent_at is not None
            case Found.COMPLETED:
                assert row is not None and row.output is not None
                raise Answered(ToolResult.model_validate(json.loads(row.output)))
            case Found.UNCERTAIN:
                raise Answered(refusal(ErrorCode.OUTCOME_UNKNOWN))
            case Found.CONFLICT:
                raise Refused(ErrorCode.CONFLICT, detail="The same call was made before under another version of the tool.")
            case Found.IN_FLIGHT:
                assert row is not None and row.lease_expires_at is not None
                raise ClaimInFlight(tool=spec.name, due_at=row.lease_expires_at)
            case Found.SETTLE:
                assert row is not None
                raise Answered(await self._settle_stale(at, row))
            case _ as never:
                assert_never(never)

    def _ceilings(self, at: Attempt) -> None:
        assert at.pre is not None
        bound = at.pre.ceilings.max_tool_calls
        if bound is not None and at.pre.tool_calls + at.inv.trail.tool_calls >= bound:
            raise RunEnded(status="succeeded", code="limit_reached", message=f"run {at.inv.run_id} has made its {bound} tool calls")

    def _live_state(self, at: Attempt) -> None:
        assert at.pre is not None
        if at.tool is None or not at.pre.tool_enabled:
            raise Refused(ErrorCode.TOOL_UNAVAILABLE)
        if at.tool.spec.contract_hash != _spec(at).contract_hash:
            raise Refused(ErrorCode.TOOL_CHANGED)

    def _approval(self, at: Attempt) -> None:
        assert at.pre is not None
        approval = at.pre.approval
        if approval is None:
            return
        match approval.status:
            case "rejected":
                said = Said(by="reviewer", text=approval.comment) if approval.comment else None
                raise Refused(ErrorCode.REJECTED, said=said)
            case "expired":
                raise Refused(ErrorCode.EXPIRED)
            case "approved":
                if approval.decider_role is not None and approval.decider_role.holds(Role.APPROVER):
                    at.approval_id = approval.id
            case "pending" | "cancelled":
                return
            case _ as never:
                assert_never(never)

    async def _ask_policy(self, at: Attempt) -> None:
        assert at.pre is not None and at.arguments is not None
        spec = _spec(at)
        answer = await self._policy.decide(
            PolicyQuestion(
                tool=spec.name,
                side_effects=spec.side_effects,
                risk=spec.risk,
                granted=at.pre.granted,
                member=at.pre.member,
                context_trust=at.pre.context_trust.lowered_by(at.inv.context_trust),
                environment=at.inv.environment,
                arguments=at.arguments,
            )
        )
        at.decision = answer
        if answer.effect == "deny":
            raise Refused(ErrorCode.DENIED)
        if answer.effect == "allow":
            return
        if at.approval_id is not None:
            at.decision = Decision(effect="allow", rule_id=answer.rule_id, rule_version=answer.rule_version, reason="a person approved this call")
            return
        raise ApprovalRequired(await self._question(at, answer))

    async def _claim(self, at: Attempt) -> None:
        """COMMIT 1. A key that moved since the preflight is read again: the claim is the authority, not the read (J2)."""
        assert at.pre is not None and at.key is not None and at.digest is not None and at.arguments_text is not None
        spec = _spec(at)
        for _ in range(_CLAIM_ROUNDS):
            decision = at.decision_record()
            assert decision is not None
            request = ClaimRequest(
                key=at.key,
                spec=spec,
                digest=at.digest,
                arguments_text=at.arguments_text,
                seen=at.pre.journal,
                lease_s=spec.timeout_s + self._settings.claim_grace_s,
                watermark=spec.watermark,
                fence=at.inv.fence,
                origin_trust=at.inv.context_trust,
                approval_id=at.approval_id,
                proposal_id=at.call.proposal_id,
                connection_id=None,
                span=open_span(at),
                decision=decision,
            )
            at.claim = await self._ledger.claim(request, inv=at.inv)
            if at.claim is not None:
                at.effect_may_have_left = at.claim.effect_sent_at is not None
                return
            await self._preflight(at)
            self._run_is_ours(at)
            await self._journal(at)
        raise ClaimInFlight(tool=spec.name, due_at=at.pre.now + timedelta(seconds=1))

    # -- the ends -----------------------------------------------------------------------------------------------------------------

    async def _settle_stale(self, at: Attempt, row: JournalRow) -> ToolResult:
        """A claim whose worker died after the effect may have left: probe, else an operator."""
        assert at.key is not None and row.lease_expires_at is not None
        at.claim = Claim(
            key=at.key,
            tool=_spec(at).name,
            epoch=row.epoch,
            attempt=row.attempt,
            repeats=0,
            lease_expires_at=row.lease_expires_at,
            effect_sent_at=row.effect_sent_at,
            span_id=row.span_id or at.span_id,
        )
        return await self._execution.settle(at, cause=None)

    async def _refuse(self, at: Attempt, refused: Refused) -> ToolResult:
        """Record a refusal. One that meets an effect that may have happened answers the truth instead: unknown."""
        row = at.pre.journal if at.pre is not None else None
        if at.prior_unknown and row is not None:
            return await self._settle_stale(at, row)
        at.inv.trail.tool_calls += 1
        await self._ledger.refuse(
            inv=at.inv,
            span=closed_span(at, refused.result, now=self._clock.now()),
            decision=at.decision_record(),
            proposal_id=at.call.proposal_id,
            code=str(refused.code),
        )
        return refused.result

    def _replayed(self, at: Attempt, result: ToolResult) -> ToolResult:
        """An answer from the journal; in the tree like every call (D3), and the same bytes for the model (B4)."""
        marked = result.model_copy(update={"meta": result.meta.model_copy(update={"replayed": True})})
        if at.claim is None:
            at.inv.trail.spans.append(closed_span(at, marked, now=self._clock.now()))
        return marked

    def _paused(self, at: Attempt) -> None:
        """A call that waits for a person: its span closes ok, and goes with the filing."""
        record = at.decision_record()
        assert record is not None
        at.inv.trail.decisions.append(record)
        at.inv.trail.spans.append(closed_span(at, None, now=self._clock.now()))

    async def _question(self, at: Attempt, answer: Decision) -> ApprovalRequest:
        assert at.pre is not None and at.digest is not None and at.arguments_text is not None
        spec = _spec(at)
        pending = at.pre.approval if at.pre.approval is not None and at.pre.approval.status == "pending" else None
        shown = None
        if pending is None and at.tool is not None:
            shown = await preview_line(at.tool, self._execution.context(at, claim=None, attempt=1), at.model)
        return ApprovalRequest(
            organization_id=at.inv.organization_id,
            run_id=at.inv.run_id,
            tool=spec.name,
            contract_hash=spec.contract_hash,
            digest=at.digest,
            arguments_text=at.arguments_text,
            shown=shown,
            rule_id=answer.rule_id,
            rule_version=answer.rule_version,
            reason=answer.reason,
            approval_id=pending.id if pending is not None else None,
        )

    def _told(self, span: Span, at: Attempt, result: ToolResult) -> ToolResult:
        describe(span, at, result)
        return result


def _spec(at: Attempt) -> ToolSpec:
    assert at.spec is not None
    return at.spec


def _places(error: ValidationError) -> str:
    """Paths and rules of a validation failure, never the values."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"/{'/'.join(map(str, fault['loc']))}: {fault['type']}" for fault in faults[:5])


def _close_names(at: Attempt) -> str | None:
    close = get_close_matches(at.call.tool.lower(), at.inv.tools, n=3, cutoff=0.5)
    return f"Close names: {', '.join(close)}." if close else None

