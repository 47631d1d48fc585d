"""Running a handler and ending its claim: steps 8 to 10 of a call (docs/architecture.md, "How a call ends").

If the process dies in here, the claim row says what may be done: nothing had left, or it may have and the table's last row decides.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from agentic.contract.clock import Clock
from agentic.contract.encoding import encode
from agentic.contract.errors import ClaimInFlight, ClaimLost, ProgramFault, StorageUnavailable
from agentic.contract.results import ErrorCode, ToolResult
from agentic.services.tools.artifacts import ArtifactKeeper, InTheRow
from agentic.services.tools.attempt import Attempt, Claimed, Decided, Prepared
from agentic.services.tools.boundary import Facts, bounded
from agentic.services.tools.context import CallContext, answer_reserve_s
from agentic.services.tools.declarations import Tool
from agentic.services.tools.endings import Ending, HandlerEnd, ending
from agentic.services.tools.handlers.errors import HandlerError
from agentic.services.tools.handling import HandlerAnswer, ask, handled, reason_of, refused
from agentic.services.tools.keys import vendor_key
from agentic.services.tools.meter import Account, Meter, Silence
from agentic.services.tools.metering import Hold
from agentic.services.tools.models import MAX_OUTPUT_BYTES
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import CallEnd, CallLedger, Claim
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.redaction import redact
from agentic.services.tools.tracing import closed_span

PROBE_TIMEOUT_S = 15.0
"""A probe runs after the call's own deadline, inside the grace of the claim's lease."""
_STORE_ATTEMPTS = 3
_log = logging.getLogger(__name__)


class Execution:
    """Performs what the table says."""

    def __init__(
        self,
        *,
        ledger: CallLedger,
        clock: Clock,
        artifacts: ArtifactKeeper | None = None,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        meter: Meter | None = None,
    ) -> None:
        self._ledger = ledger
        self._meter = meter or Meter()
        self._clock = clock
        self._artifacts = artifacts or InTheRow()
        self._max_output_bytes = max_output_bytes

    async def read(self, decided: Decided, *, hold: Hold | None = None) -> ToolResult:
        """Run a read: no claim, its span goes with the segment.

        Args:
            hold: the money held for a metered one; it is counted before the answer is returned (M4).

        Raises:
            StorageUnavailable, ClaimLost: a metered one could not be counted.
            Exception: whatever the handler raised that is neither declared nor a time-out.
        """
        at = decided.call.at
        ctx = self.read_context(decided.call)
        answer = await handled(decided.tool, decided.model, ctx)
        at.used(ctx.secrets)
        result, artifacts = await self._result(decided.call, decided.tool, ctx, answer)
        account = await self._read_account(decided.call, ctx, answer, result, hold)
        result, artifacts = account.result, [] if account.withheld else artifacts
        trail = at.inv.trail
        trail.tool_calls += 1
        if hold is None:
            trail.usage.extend(account.usage)
        trail.decisions.append(at.record_of(decided.decision))
        _observed(at, ctx, result)
        trail.artifacts.extend(await self._kept(at, artifacts))
        raised = answer.error if answer.end is HandlerEnd.RAISED else None
        trail.spans.append(closed_span(at, result, now=self._clock.now(), raised=raised))
        if raised is not None:
            at.ended = result
            raise raised
        return result

    async def effect(self, claimed: Claimed) -> ToolResult:
        """Run a claimed write or send to its end.

        Raises:
            ClaimInFlight: nobody knows yet; the claim is held until the error's ``due_at``.
            ClaimLost: a later worker owns the call.
            Exception: the handler failed where nothing can have happened, or where again is harmless; the claim is released.
        """
        call, claim = claimed.call, claimed.claim
        if claimed.tool is None or claimed.model is None:
            raise ProgramFault(f"{call.spec.name} was claimed without its code")
        call.at.inv.trail.tool_calls += 1
        watermark = _Watermark(set_=claim.effect_sent_at is not None)
        repeats = claim.repeats
        while True:
            ctx = self._effect_context(claimed, watermark)
            answer = await handled(claimed.tool, claimed.model, ctx)
            call.at.used(ctx.secrets)
            what = ending(
                answer.end,
                call.spec.idempotency,
                effect_may_have_left=watermark.set_,
                prior_unknown=claimed.prior_unknown or repeats > 0,
                repeats=repeats,
                time_left=call.at.deadline > self._clock.monotonic(),
            )
            match what:
                case Ending.COMPLETE:
                    return await self._complete(claimed, ctx, answer)
                case Ending.RELEASE:
                    return await self._release(claimed, ctx, answer)
                case Ending.RELEASE_AND_RAISE:
                    call.at.ended = await self._release(claimed, ctx, answer, sent=watermark.set_)
                    raise answer.error or TimeoutError(f"{call.spec.name} did not answer in time")
                case Ending.REPEAT:
                    repeats += 1
                    if not await self._ledger.count_repeat(claim):
                        raise ClaimLost(f"{call.spec.name}: a later worker owns this call")
                case Ending.HOLD:
                    await self._store(
                        claimed, self._ledger.hold, refusal(ErrorCode.OUTCOME_UNKNOWN), raised=answer.error
                    )
                    raise ClaimInFlight(tool=call.spec.name, due_at=claim.lease_expires_at)
                case Ending.SETTLE:
                    return await self.settle(claimed, cause=answer)
                case _ as never:
                    assert_never(never)

    async def settle(self, claimed: Claimed, *, cause: HandlerAnswer | None) -> ToolResult:
        """Ask the probe whether the effect happened; without one, or when it cannot tell, an operator owns it (ADR 0009).

        Args:
            claimed: a claim under which the effect may have happened.
            cause: how this worker's handler ended; ``None`` for a claim whose worker died.

        Raises:
            ClaimInFlight: the probe says that it did not happen; the call is free to be made again at once.
            ClaimLost: a later worker owns the call.
        """
        known = await self.probed(claimed)
        if known is not None:
            return known
        reason = reason_of(cause, claimed.call.at.secrets)

        async def give_up(claim: Claim, end: CallEnd) -> bool:
            return await self._ledger.uncertain(claim, end, reason=reason)

        result = refusal(ErrorCode.OUTCOME_UNKNOWN)
        await self._store(claimed, give_up, result, raised=cause.error if cause is not None else None)
        return result

    async def probed(self, claimed: Claimed) -> ToolResult | None:
        """Settle a claim by its tool's probe; ``None`` when there is none, or it cannot tell, and the claim stands as it did.

        Raises:
            ClaimInFlight: it did not happen; the call is free to be made again at once.
            ClaimLost: a later worker owns the call.
        """
        if claimed.tool is not None and claimed.tool.probe is not None and claimed.model is not None:
            ctx = self._effect_context(claimed, _Watermark(set_=True))
            ctx.deadline = self._clock.monotonic() + PROBE_TIMEOUT_S
            probed = await ask(claimed.tool.probe, claimed.model, ctx)
            claimed.call.at.used(ctx.secrets)
            if probed is not None and probed.value is not None:
                return await self._complete(claimed, ctx, probed, silence=Silence.SPENT)
            if probed is not None:
                await self._release(claimed, ctx, HandlerAnswer(end=HandlerEnd.RETRYABLE_REFUSAL))
                raise ClaimInFlight(tool=claimed.call.spec.name, due_at=self._clock.now())
        return None

    def read_context(self, call: Prepared) -> CallContext:
        """What a read's handler or a preview sees: no key, and nothing to mark."""

        async def nothing_to_mark() -> None:
            return

        return self._context(call, None, before_first_byte=nothing_to_mark)

    def _effect_context(self, claimed: Claimed, watermark: "_Watermark") -> CallContext:
        claim = claimed.claim

        async def before_first_byte() -> None:
            if watermark.set_:
                return
            if not await self._ledger.mark_effect_sent(claim):
                raise ClaimLost(f"{claim.tool}: a later worker owns this call; nothing was sent")
            watermark.set_ = claimed.call.at.effect_sent = True

        return self._context(claimed.call, claim, before_first_byte=before_first_byte)

    def _context(
        self, call: Prepared, claim: Claim | None, *, before_first_byte: Callable[[], Awaitable[None]]
    ) -> CallContext:
        inv, timeout_s = call.at.inv, call.spec.timeout_s
        return CallContext(
            principal=inv.principal,
            run_id=inv.run_id,
            tool=call.spec.name,
            idempotency_key=vendor_key(claim) if claim is not None else None,
            epoch=claim.epoch if claim is not None else None,
            attempt=claim.attempt if claim is not None else 1,
            lease_expires_at=claim.lease_expires_at if claim is not None else None,
            timeout_s=timeout_s,
            deadline=call.at.deadline - answer_reserve_s(timeout_s),
            cancelled=inv.cancelled,
            clock=self._clock,
            before_first_byte=before_first_byte,
            account=call.at.connection,
            secrets=call.at.secrets,
            source_trust=call.at.source_trust,
        )

    async def _result(
        self, call: Prepared, tool: Tool | None, ctx: CallContext, answer: HandlerAnswer
    ) -> tuple[ToolResult, list[ArtifactRecord]]:
        """What the call answers, and what is to be kept beside it."""
        if answer.end is not HandlerEnd.RETURNED:
            result = refused(call, tool, answer)
            # what a handler's refusal quotes is of the tool's label, or the lower one the handler gave (ADR 0012)
            trust = call.spec.output_trust.lowered_by(ctx.output_trust)
            return result.model_copy(update={"meta": result.meta.model_copy(update={"trust": trust})}), []
        facts = Facts(
            span_id=call.at.span_id,
            secrets=call.at.secrets,
            trust=ctx.output_trust,
            max_output_bytes=self._max_output_bytes,
        )
        result, whole = await bounded(call.spec, answer.value, facts)
        trust = result.meta.trust or call.spec.output_trust
        saved = ctx.saved.records(span_id=call.at.span_id, trust=trust, secrets=call.at.secrets)
        return result, [*([whole] if whole is not None else []), *saved]

    async def _kept(self, at: Attempt, records: Sequence[ArtifactRecord]) -> list[ArtifactRecord]:
        """Bring the bytes to their place before the commit that names them; a process that dies in between leaves bytes unnamed."""
        organization_id, run_id = at.inv.organization_id, at.inv.run_id
        return [await self._artifacts.keep(each, organization_id=organization_id, run_id=run_id) for each in records]

    async def _complete(
        self, claimed: Claimed, ctx: CallContext, answer: HandlerAnswer, *, silence: Silence | None = None
    ) -> ToolResult:
        result, artifacts = await self._result(claimed.call, claimed.tool, ctx, answer)
        account = await self._meter.of_effect(
            claimed, result, ctx.usage, silence=silence or _silence(answer.end), with_job=ctx.with_job
        )
        artifacts = [] if account.withheld else await self._kept(claimed.call.at, artifacts)
        await self._store(claimed, self._ledger.complete, account.result, account=account, artifacts=artifacts)
        _observed(claimed.call.at, ctx, account.result)
        return account.result

    async def _release(
        self, claimed: Claimed, ctx: CallContext, answer: HandlerAnswer, *, sent: bool = False
    ) -> ToolResult:
        """Forget the claim.

        Args:
            sent: the effect may have left, and making it again is harmless; what it may have cost is spent all the same.
        """
        result, _ = await self._result(claimed.call, claimed.tool, ctx, answer)
        raised = answer.error if answer.end is HandlerEnd.RAISED else None
        account = None
        if claimed.call.spec.metered:
            silence, usage = (Silence.SPENT, ()) if sent else (Silence.FREE, ctx.usage)
            account = await self._meter.of_effect(claimed, result, usage, silence=silence)
            result = account.result
        await self._store(claimed, self._ledger.release, result, account=account, raised=raised)
        return result

    async def _read_account(
        self, call: Prepared, ctx: CallContext, answer: HandlerAnswer, result: ToolResult, hold: Hold | None
    ) -> Account:
        if hold is None:
            return self._meter.of_read(call, result, ctx.usage) if ctx.usage else Account(result=result)
        if answer.end in (HandlerEnd.RAISED, HandlerEnd.TIMED_OUT) and not _costs_nothing(answer.error):
            return Account(result=result)  # it may have been charged: held until its lease is over, then spent
        return await self._meter.end_read(call, result, ctx.usage, hold=hold, silence=_silence(answer.end))

    async def _store(
        self,
        claimed: Claimed,
        how: Callable[[Claim, CallEnd], Awaitable[bool]],
        result: ToolResult,
        *,
        account: Account | None = None,
        artifacts: Sequence[ArtifactRecord] = (),
        raised: Exception | None = None,
    ) -> None:
        """COMMIT 2. Tried again when the database drops the connection.

        A first try that arrived after all makes the second match nothing; the call is then given up here, and the next
        leader of the run answers it from the journal.
        """
        at = claimed.call.at
        end = CallEnd(
            outcome_status="ok" if result.ok else "error",
            outcome_code=None if result.error is None else str(result.error.code),
            output=encode(result.model_dump(mode="json")),
            span=closed_span(at, result, now=self._clock.now(), raised=raised),
            proposal_id=at.call.proposal_id,
            usage=account.usage if account is not None else (),
            hold=account.hold if account is not None else None,
            artifact_id=result.meta.artifact_id,
            artifacts=artifacts,
            arguments_text=_without_secrets(at),
        )
        for left in reversed(range(_STORE_ATTEMPTS)):
            try:
                stored = await how(claimed.claim, end)
            except StorageUnavailable:
                if not left:
                    raise
                continue
            if not stored:
                raise ClaimLost(f"{at.call.tool}: a later worker owns this call")
            return


@dataclass(kw_only=True, slots=True)
class _Watermark:
    """Whether the effect of a claim may have left."""

    set_: bool


def _observed(at: Attempt, ctx: CallContext, result: ToolResult) -> None:
    """Hand what a successful call saw to the run's breakers, and the job it would wait for to its leader."""
    if result.ok and ctx.evidence is not None and at.call.wire_call_id is not None:
        at.inv.trail.evidence[at.call.wire_call_id] = ctx.evidence
    if result.ok and ctx.job_wait is not None and at.call.wire_call_id is not None:
        at.inv.trail.job_waits[at.call.wire_call_id] = ctx.job_wait


def _silence(end: HandlerEnd) -> Silence:
    """What it means that a metered call which ended like this reported nothing."""
    return Silence.FAULT if end is HandlerEnd.RETURNED else Silence.FREE


def _costs_nothing(error: Exception | None) -> bool:
    return isinstance(error, HandlerError) and error.costs_nothing


def _without_secrets(at: Attempt) -> str | None:
    """What the journal shows of the arguments, once the call's secrets are known."""
    if not at.secrets or at.arguments is None:
        return None
    return encode(redact(at.arguments, at.secrets)).decode()
