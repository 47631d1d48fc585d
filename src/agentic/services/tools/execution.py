"""Running a handler and ending its claim: steps 9 to 11 of a call (STATE "How a call ends").

If the process dies in here, the claim row says what may be done: nothing had left, or it may have and the table's last row decides.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never
from uuid import UUID, uuid4

from agentic.contract.clock import Clock
from agentic.contract.encoding import encode
from agentic.contract.errors import ClaimInFlight, ClaimLost, GiveUp, StorageUnavailable
from agentic.contract.results import ErrorCode, Said, ToolResult
from agentic.services.tools.attempt import Attempt
from agentic.services.tools.boundary import bounded_result
from agentic.services.tools.context import CallContext, ReportedUsage
from agentic.services.tools.endings import Ending, HandlerEnd, ending
from agentic.services.tools.handlers.errors import DefiniteRefusal
from agentic.services.tools.keys import usage_id, vendor_key
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import CallEnd, CallLedger, Claim, Probe
from agentic.services.tools.records import ArtifactRecord, SpanStatus, UsageRecord
from agentic.services.tools.redaction import redact_text
from agentic.services.tools.tracing import closed_span

PROBE_TIMEOUT_S = 15.0
"""A probe runs after the call's own deadline, inside the grace of the claim's lease."""
_STORE_ATTEMPTS = 3
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class HandlerAnswer:
    """What a handler did, as a value."""

    end: HandlerEnd
    value: Any = None
    error: Exception | None = None


class Execution:
    """Performs what the table says."""

    def __init__(self, *, ledger: CallLedger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def read(self, at: Attempt) -> ToolResult:
        """Run a read: no claim, its span goes with the segment.

        Raises:
            Exception: whatever the handler raised that is neither declared nor a time-out.
        """
        ctx = self.context(at, claim=None, attempt=1)
        answer = await self._handle(at, ctx)
        result, artifact = self._result(at, ctx, answer)
        usage = [_usage(at, item, id=uuid4()) for item in ctx.usage]
        trail = at.inv.trail
        trail.tool_calls += 1
        trail.usage.extend(usage)
        if artifact is not None:
            trail.artifacts.append(artifact)
        record = at.decision_record()
        if record is not None:
            trail.decisions.append(record)
        raised = answer.error if answer.end is HandlerEnd.RAISED else None
        trail.spans.append(closed_span(at, result, now=self._clock.now(), raised=raised))
        if raised is not None:
            raise raised
        return result

    async def effect(self, at: Attempt) -> ToolResult:
        """Run a claimed write or send to its end.

        Raises:
            ClaimInFlight: nobody knows yet; the claim is held until the error's ``due_at``.
            ClaimLost: a later worker owns the call.
            Exception: the handler failed where nothing can have happened, or where again is harmless; the claim is released.
        """
        assert at.spec is not None and at.claim is not None
        at.inv.trail.tool_calls += 1
        repeats = at.claim.repeats
        while True:
            ctx = self.context(at, claim=at.claim, attempt=at.claim.attempt)
            answer = await self._handle(at, ctx)
            what = ending(
                answer.end,
                at.spec.idempotency,
                effect_may_have_left=at.effect_may_have_left,
                prior_unknown=at.prior_unknown or repeats > 0,
                repeats=repeats,
                time_left=at.deadline > self._clock.monotonic(),
            )
            match what:
                case Ending.COMPLETE:
                    return await self._complete(at, ctx, answer)
                case Ending.RELEASE:
                    return await self._release(at, ctx, answer)
                case Ending.RELEASE_AND_RAISE:
                    await self._release(at, ctx, answer)
                    raise _failure(answer, at)
                case Ending.REPEAT:
                    repeats += 1
                    if not await self._ledger.count_repeat(at.claim):
                        raise ClaimLost(f"{at.spec.name}: a later worker owns this call")
                case Ending.HOLD:
                    await self._hold(at, answer)
                    raise ClaimInFlight(tool=at.spec.name, due_at=at.claim.lease_expires_at)
                case Ending.SETTLE:
                    return await self.settle(at, cause=answer)
                case _ as never:
                    assert_never(never)

    async def settle(self, at: Attempt, *, cause: HandlerAnswer | None) -> ToolResult:
        """Ask the probe whether the effect happened; without one, or when it cannot tell, hand the call to an operator (DECISIONS 14).

        Args:
            cause: how this worker's handler ended; ``None`` for a claim whose worker died.
        """
        assert at.spec is not None and at.claim is not None
        ctx = self.context(at, claim=at.claim, attempt=at.claim.attempt)
        if at.tool is not None and at.tool.probe is not None and at.model is not None:
            ctx.deadline = self._clock.monotonic() + PROBE_TIMEOUT_S
            probed = await self._probe(at, ctx, at.tool.probe)
            if probed is not None and probed.value is not None:
                return await self._complete(at, ctx, probed)
            if probed is not None:
                await self._release(at, ctx, HandlerAnswer(end=HandlerEnd.RETRYABLE_REFUSAL))
                raise ClaimInFlight(tool=at.spec.name, due_at=self._clock.now())
        reason = _reason(cause)
        result = refusal(ErrorCode.OUTCOME_UNKNOWN)
        await self._store(at, lambda claim, end: self._ledger.uncertain(claim, end, reason=reason), result, status=SpanStatus.UNKNOWN)
        return result

    def context(self, at: Attempt, *, claim: Claim | None, attempt: int) -> CallContext:
        """What the handler sees."""

        async def before_first_byte() -> None:
            if claim is None or at.effect_may_have_left:
                return
            if not await self._ledger.mark_effect_sent(claim):
                raise ClaimLost(f"{claim.tool}: a later worker owns this call; nothing was sent")
            at.effect_may_have_left = True

        return CallContext(
            principal=at.inv.principal,
            run_id=at.inv.run_id,
            tool=at.call.tool,
            idempotency_key=vendor_key(claim) if claim is not None else None,
            attempt=attempt,
            deadline=at.deadline,
            clock=self._clock,
            before_first_byte=before_first_byte,
        )

    async def _handle(self, at: Attempt, ctx: CallContext) -> HandlerAnswer:
        assert at.tool is not None and at.model is not None and at.spec is not None
        try:
            async with asyncio.timeout(ctx.remaining_s) as limit:
                return HandlerAnswer(end=HandlerEnd.RETURNED, value=await at.tool.handler.execute(ctx, at.model))
        except DefiniteRefusal as error:
            return HandlerAnswer(end=HandlerEnd.RETRYABLE_REFUSAL if error.retryable else HandlerEnd.DEFINITE_REFUSAL, error=error)
        except GiveUp:
            raise
        except TimeoutError as error:
            return HandlerAnswer(end=HandlerEnd.TIMED_OUT if limit.expired() else HandlerEnd.RAISED, error=error)
        except Exception as error:
            declared = type(error) in at.tool.refusals
            return HandlerAnswer(end=HandlerEnd.BUSINESS_REFUSAL if declared else HandlerEnd.RAISED, error=error)

    async def _probe(self, at: Attempt, ctx: CallContext, probe: Probe) -> HandlerAnswer | None:
        """The probe's answer; ``None`` when it cannot tell."""
        assert at.model is not None
        try:
            async with asyncio.timeout(ctx.remaining_s):
                return HandlerAnswer(end=HandlerEnd.RETURNED, value=await probe(ctx, at.model))
        except Exception as error:  # a probe that fails tells nothing; the operator is asked instead
            _log.warning("the probe of %s could not tell whether the call happened (%s)", at.call.tool, type(error).__name__)
            return None

    async def _complete(self, at: Attempt, ctx: CallContext, answer: HandlerAnswer) -> ToolResult:
        result, artifact = self._result(at, ctx, answer)
        assert at.claim is not None
        usage = [_usage(at, item, id=usage_id(at.claim, index)) for index, item in enumerate(ctx.usage)]
        await self._store(at, self._ledger.complete, result, usage=usage, artifact=artifact)
        return result

    async def _release(self, at: Attempt, ctx: CallContext, answer: HandlerAnswer) -> ToolResult:
        result, _ = self._result(at, ctx, answer)
        await self._store(at, self._ledger.release, result, raised=answer.error if answer.end is HandlerEnd.RAISED else None)
        return result

    async def _hold(self, at: Attempt, answer: HandlerAnswer) -> None:
        result = refusal(ErrorCode.OUTCOME_UNKNOWN)
        await self._store(at, self._ledger.hold, result, status=SpanStatus.UNKNOWN, raised=answer.error)

    async def _store(
        self,
        at: Attempt,
        how: Callable[[Claim, CallEnd], Awaitable[bool]],
        result: ToolResult,
        *,
        usage: Sequence[UsageRecord] = (),
        artifact: ArtifactRecord | None = None,
        status: SpanStatus | None = None,
        raised: Exception | None = None,
    ) -> None:
        """COMMIT 2. Tried again when the database drops the connection: a second try finds the first or writes it."""
        assert at.claim is not None
        end = CallEnd(
            outcome_status="ok" if result.ok else "error",
            outcome_code=None if result.error is None else str(result.error.code),
            output=encode(result.model_dump(mode="json")),
            span=closed_span(at, result, now=self._clock.now(), status=status, raised=raised),
            proposal_id=at.call.proposal_id,
            usage=usage,
            artifact=artifact,
        )
        for left in reversed(range(_STORE_ATTEMPTS)):
            try:
                stored = await how(at.claim, end)
            except StorageUnavailable:
                if not left:
                    raise
                continue
            if not stored:
                raise ClaimLost(f"{at.call.tool}: a later worker owns this call")
            return

    def _result(self, at: Attempt, ctx: CallContext, answer: HandlerAnswer) -> tuple[ToolResult, ArtifactRecord | None]:
        assert at.spec is not None and at.tool is not None
        match answer.end:
            case HandlerEnd.RETURNED:
                return bounded_result(at.spec, answer.value, span_id=at.span_id, secrets=ctx.secrets)
            case HandlerEnd.BUSINESS_REFUSAL:
                assert answer.error is not None
                said = Said(by="domain", text=redact_text(str(answer.error), ctx.secrets)[:2000])
                return refusal(at.tool.refusals[type(answer.error)], said=said), None
            case HandlerEnd.DEFINITE_REFUSAL | HandlerEnd.RETRYABLE_REFUSAL:
                if not isinstance(answer.error, DefiniteRefusal):
                    return refusal(ErrorCode.RETRYABLE_UPSTREAM), None
                words = answer.error.external_text
                said_remote = Said(by="remote", text=redact_text(words, ctx.secrets)[:2000]) if words else None
                return refusal(answer.error.code, said=said_remote), None
            case HandlerEnd.TIMED_OUT:
                return refusal(ErrorCode.TIMEOUT), None
            case HandlerEnd.RAISED:
                return refusal(ErrorCode.INTERNAL_ERROR), None
            case _ as never:
                assert_never(never)


def _usage(at: Attempt, item: ReportedUsage, *, id: UUID) -> UsageRecord:
    return UsageRecord(
        id=id,
        kind="tool",
        provider=item.provider or at.call.tool.split(".", 1)[0],
        item=at.call.tool,
        quantity=item.quantity,
        unit=item.unit,
        cost=item.cost,
        span_id=at.span_id,
    )


def _failure(answer: HandlerAnswer, at: Attempt) -> Exception:
    return answer.error if answer.error is not None else TimeoutError(f"{at.call.tool} did not answer in time")


def _reason(cause: HandlerAnswer | None) -> str:
    if cause is None:
        return "the worker died after the effect may have left"
    if cause.end is HandlerEnd.TIMED_OUT:
        return "no answer before the deadline"
    return f"the handler failed after the effect may have left ({type(cause.error).__name__})"

