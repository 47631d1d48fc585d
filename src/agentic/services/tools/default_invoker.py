"""The invoker: one column, a step a line, in the order of docs/architecture.md, "The way of one call".

Each step takes what the ones before it made sure of and either hands on more, ends the call with a stable code, answers it from the
journal, or raises what the caller must act on. Nothing before COMMIT 1 touches the world; nothing after it is undone.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.canonical import canonical, digest_of
from agentic.contract.clock import Clock
from agentic.contract.errors import ApprovalRequired, ClaimInFlight, LeaseLost, NotFound, ProgramFault
from agentic.contract.results import ErrorCode, ToolResult
from agentic.services.tools.artifacts import ArtifactKeeper
from agentic.services.tools.attempt import Answered, Attempt, Claimed, Decided, Prepared, Refused, Stale
from agentic.services.tools.call_events import EventSink, log_event
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.connecting import connect, connect_probe
from agentic.services.tools.connections import ConnectionPort, NoConnections
from agentic.services.tools.deciding import Deciding
from agentic.services.tools.endings import Found, VendorWindow, found
from agentic.services.tools.execution import Execution
from agentic.services.tools.judging import approved, live, run_is_ours, within_ceilings
from agentic.services.tools.keys import call_key
from agentic.services.tools.meter import Meter
from agentic.services.tools.metering import Hold
from agentic.services.tools.models import MAX_OUTPUT_BYTES
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import (
    CallLedger,
    ClaimRequest,
    FactFinder,
    JournalRow,
    PolicyPort,
    Preflight,
    no_facts,
)
from agentic.services.tools.preparing import arguments_of, close_names
from agentic.services.tools.redaction import redact
from agentic.services.tools.registry import ToolRegistry
from agentic.services.tools.targets import executable
from agentic.services.tools.telling import Telling, telling
from agentic.services.tools.tracing import closed_span, open_span, step_span, untraced

MIN_PLATFORM_OUTPUT_BYTES = 1024
_CLAIM_ROUNDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class InvokerSettings:
    """Bounds of the invoker."""

    claim_grace_s: float = 30
    """A claim's lease is the call's timeout plus this; never renewed."""
    max_output_bytes: int = MAX_OUTPUT_BYTES
    """How much of an answer a model reads at most, 1,024 to 32,768 bytes; a tool's own lower bound wins (B1)."""

    def __post_init__(self) -> None:
        """Refuse a bound outside its range."""
        if not MIN_PLATFORM_OUTPUT_BYTES <= self.max_output_bytes <= MAX_OUTPUT_BYTES:
            raise ProgramFault(
                f"max_output_bytes is {self.max_output_bytes}; use {MIN_PLATFORM_OUTPUT_BYTES} to {MAX_OUTPUT_BYTES}"
            )


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
        artifacts: ArtifactKeeper | None = None,
        events: EventSink = log_event,
        meter: Meter | None = None,
        connections: ConnectionPort | None = None,
        facts: FactFinder = no_facts,
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._clock = clock
        self._settings = settings or InvokerSettings()
        self._events = events
        self._meter = meter or Meter()
        self._connections = connections or NoConnections()
        self._execution = Execution(
            ledger=ledger,
            clock=clock,
            artifacts=artifacts,
            max_output_bytes=self._settings.max_output_bytes,
            meter=self._meter,
        )
        self._deciding = Deciding(
            policy=policy, facts=facts, connections=self._connections, context=self._execution.read_context
        )

    async def invoke(self, call: ToolCall, inv: ToolInvocation) -> ToolResult:
        """Run one call; see the port."""
        at = self._begin(call, inv)
        with telling(at, clock=self._clock, sink=self._events) as tell:
            try:
                decided = await self._decide(at)
                tell.authorized()
                if decided.call.spec.journaled:
                    claimed = await self._claim(decided)
                    tell.started()
                    result = await self._execution.effect(claimed)
                else:
                    hold = await self._hold(decided) if decided.call.spec.metered else None
                    tell.started()
                    result = await self._execution.read(decided, hold=hold)
            except Answered as answered:
                result = self._replayed(at, answered)
            except Refused as refused:
                result = await self._refuse(at, refused)
            except ApprovalRequired:
                self._paused(at)
                raise
            tell.ended(result)
            return result

    async def must_ask(self, call: ToolCall, inv: ToolInvocation) -> ApprovalRequest | None:
        """The question this call would put to a person; see the port."""
        at = self._begin(call, inv)
        try:
            await self._decide(at)
        except ApprovalRequired as asked:
            self._paused(at)
            Telling(at, untraced(), clock=self._clock, sink=self._events).proposed()
            return asked.request
        except (Answered, Refused, ClaimInFlight):
            return None  # decided again, live, when its turn comes
        return None

    async def settle_by_probe(self, call: ToolCall, inv: ToolInvocation, row: JournalRow, *, key: str) -> bool:
        """Settle a claim that nobody proposes again by its tool's probe; ``False`` when it cannot tell.

        Args:
            row: the claim, whose lease whoever asks here holds.
            key: its key; a call whose arguments do not lead to it cannot be asked about.

        Raises:
            ClaimInFlight: it did not happen; the claim is gone.
            ClaimLost: somebody else settled it meanwhile.
        """
        at = self._begin(call, inv)
        at.span_id = row.span_id or at.span_id
        try:
            prepared = self._prepare(at)
        except Refused:  # the tool is another one by now
            return False
        if prepared.key.key != key:
            return False
        known = await self._execution.probed(await self._found(Stale(call=prepared, row=row)))
        if known is None:
            return False
        Telling(at, untraced(), clock=self._clock, sink=self._events).ended(known)
        return True

    # -- the column ---------------------------------------------------------------------------------------------------

    async def _decide(self, at: Attempt) -> Decided:
        call = self._prepare(at)  # 1
        pre = await self._preflight(call)  # 2
        run_is_ours(call, pre)
        await self._journal(call, pre)  # 3
        within_ceilings(call, pre)
        tool, model = live(call, pre)  # 4
        at.approval = approved(pre.approval)  # 5
        decision = await self._deciding.decide(call, pre, tool, model)  # 6
        await connect(call, self._connections)  # 7
        return Decided(call=call, tool=tool, model=model, pre=pre, decision=decision)

    def _begin(self, call: ToolCall, inv: ToolInvocation) -> Attempt:
        frozen = inv.tools.get(call.tool)
        spec = frozen.spec if frozen is not None else None
        deadline = self._clock.monotonic() + (spec.timeout_s if spec is not None else 0)
        return Attempt(call=call, inv=inv, spec=spec, started_at=self._clock.now(), deadline=deadline)

    def _prepare(self, at: Attempt) -> Prepared:
        spec = at.spec
        if spec is None or at.call.fault == "unknown_tool":  # a platform name is no name the model was shown
            raise Refused(ErrorCode.UNKNOWN_TOOL, detail=close_names(at))
        if at.call.fault is not None:
            raise Refused(ErrorCode.INVALID_INPUT, detail="The call was cut off before it was whole; propose it again.")
        tool = self._registry.get(spec.name, at.inv.organization_id) if executable(spec) else None
        with step_span("tool.validate"):
            at.arguments, body, model = arguments_of(at.call.arguments_text, spec, tool)
        at.digest = digest_of(body)
        return Prepared(
            at=at,
            spec=spec,
            tool=tool,
            arguments=at.arguments,
            arguments_text=body.decode(),
            digest=at.digest,
            model=model,
            key=call_key(
                organization_id=at.inv.organization_id,
                run_id=at.inv.run_id,
                tool=spec.name,
                step_path=at.call.step_path,
                arguments_digest=at.digest,
                contract_hash=spec.contract_hash,
            ),
        )

    async def _preflight(self, call: Prepared) -> Preflight:
        pre = await self._ledger.preflight(
            call.key,
            inv=call.at.inv,
            tool=call.spec.name,
            version=call.spec.version,
            contract_hash=call.spec.contract_hash,
            digest=call.digest,
        )
        if pre is None:
            raise NotFound(f"run {call.at.inv.run_id} does not exist in this organization")
        return pre

    async def _journal(self, call: Prepared, pre: Preflight) -> None:
        row = pre.journal
        if row is None:
            return
        window = VendorWindow(call_timeout_s=call.spec.timeout_s)
        match found(row, request_hash=call.key.request_hash, now=pre.now, window=window):
            case Found.NOTHING:
                return
            case Found.TAKE_OVER:
                call.at.stale = Stale(call=call, row=row) if row.effect_sent_at is not None else None
            case Found.COMPLETED:
                raise Answered(ToolResult.model_validate(json.loads(row.output or b"null")))
            case Found.UNCERTAIN:
                raise Answered(refusal(ErrorCode.OUTCOME_UNKNOWN))
            case Found.CONFLICT:
                raise Refused(ErrorCode.CONFLICT, detail="The same call was made under another version of the tool.")
            case Found.IN_FLIGHT:
                raise ClaimInFlight(tool=call.spec.name, due_at=row.lease_expires_at or pre.now)
            case Found.SETTLE:
                raise Answered(await self._settle(Stale(call=call, row=row)), recorded=True)
            case _ as never:
                assert_never(never)

    async def _claim(self, decided: Decided) -> Claimed:
        """COMMIT 1. A key that moved since the preflight is read again: the claim is the authority, not the read (J2)."""
        call, pre, at = decided.call, decided.pre, decided.call.at
        for _ in range(_CLAIM_ROUNDS):
            request = ClaimRequest(
                key=call.key,
                spec=call.spec,
                digest=call.digest,
                arguments_text=canonical(redact(call.arguments, at.secrets)).decode(),
                seen=pre.journal,
                lease_s=call.spec.timeout_s + self._settings.claim_grace_s,
                watermark=call.spec.watermark,
                fence=at.inv.fence,
                origin_trust=at.inv.context_trust,
                approval_id=at.approval_id,
                proposal_id=at.call.proposal_id,
                connection_id=at.connection.id if at.connection is not None else None,
                span=open_span(at),
                decision=at.record_of(decided.decision),
            )
            if call.spec.metered:
                claim = await self._meter.claim(call, request)
            else:
                claim = await self._ledger.claim(request, inv=at.inv)
            if claim is not None:
                at.claim = claim
                return Claimed(
                    call=call, tool=decided.tool, model=decided.model, claim=claim, prior_unknown=at.stale is not None
                )
            pre = await self._preflight(call)
            run_is_ours(call, pre)
            await self._journal(call, pre)
            await connect(call, self._connections)
        raise ClaimInFlight(tool=call.spec.name, due_at=pre.now + timedelta(seconds=1))

    async def _hold(self, decided: Decided) -> Hold:
        """The money of a metered read, held before it runs; a run that is no longer ours says why (M2)."""
        call = decided.call
        try:
            return await self._meter.hold_read(call, lease_s=call.spec.timeout_s + self._settings.claim_grace_s)
        except LeaseLost:
            run_is_ours(call, await self._preflight(call))
            raise

    # -- the ends -----------------------------------------------------------------------------------------------------

    async def _settle(self, stale: Stale) -> ToolResult:
        """A claim whose worker died after the effect may have left: probe, else an operator."""
        return await self._execution.settle(await self._found(stale), cause=None)

    async def _found(self, stale: Stale) -> Claimed:
        """A dead worker's claim as one that is held here, with the account it was claimed for."""
        call, claim = (
            stale.call,
            stale.row.claim(stale.call.key, tool=stale.call.spec.name, span_id=stale.call.at.span_id),
        )
        call.at.claim = claim
        await connect_probe(call, self._connections, on=stale.row.connection_id)
        return Claimed(call=call, tool=call.tool, model=call.model, claim=claim, prior_unknown=True)

    async def _refuse(self, at: Attempt, refused: Refused) -> ToolResult:
        """Record a refusal. One that meets an effect that may have happened answers the truth instead: unknown."""
        if at.stale is not None:
            return await self._settle(at.stale)
        at.inv.trail.tool_calls += 1
        await self._ledger.refuse(
            inv=at.inv,
            span=closed_span(at, refused.result, now=self._clock.now()),
            decision=at.decision_record(),
            proposal_id=at.call.proposal_id,
            code=str(refused.code),
        )
        return refused.result

    def _replayed(self, at: Attempt, answered: Answered) -> ToolResult:
        """An answer from the journal: in the tree like every call (D3), and the same bytes for the model (B4)."""
        meta = answered.result.meta.model_copy(update={"replayed": not answered.recorded})
        result = answered.result.model_copy(update={"meta": meta})
        if not answered.recorded:
            at.inv.trail.spans.append(closed_span(at, result, now=self._clock.now()))
        return result

    def _paused(self, at: Attempt) -> None:
        """A call that waits for a person: its span closes ok, and goes with the filing."""
        record = at.decision_record()
        if record is not None:
            at.inv.trail.decisions.append(record)
        at.inv.trail.spans.append(closed_span(at, None, now=self._clock.now()))
