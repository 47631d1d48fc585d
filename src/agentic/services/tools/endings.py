"""How a call ends, and how a claim found stale goes on: the table of ADR 0009, as pure functions.

After the watermark only a returned value or a declared definite refusal ends normally; everything else is unknown.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from agentic.services.tools.models import IdempotencyClass
from agentic.services.tools.ports import JournalRow

MAX_REPEATS = 2
"""In-place repeats of a conditional call under one key."""


class HandlerEnd(StrEnum):
    """What the handler did."""

    RETURNED = "returned"
    BUSINESS_REFUSAL = "business_refusal"
    """A declared leaf exception of the domain: stable."""
    DEFINITE_REFUSAL = "definite_refusal"
    """The service said no for good: nothing happened, and asking again changes nothing."""
    RETRYABLE_REFUSAL = "retryable_refusal"
    """Nothing happened; a later attempt may succeed."""
    NOT_STARTED = "not_started"
    """The call's time was up before the handler began; nothing happened."""
    RAISED = "raised"
    TIMED_OUT = "timed_out"


class Ending(StrEnum):
    """What becomes of the claim."""

    COMPLETE = "complete"
    RELEASE = "release"
    """Nothing happened: forget the claim and answer."""
    RELEASE_AND_RAISE = "release_and_raise"
    """Nothing happened, or again is harmless: forget the claim, the run comes back."""
    REPEAT = "repeat"
    """Again in place: the same key and the same bytes (J7)."""
    HOLD = "hold"
    """Keep the claim; the run comes back when its lease ends."""
    SETTLE = "settle"
    """Ask the probe, else an operator."""


def ending(
    end: HandlerEnd,
    cls: IdempotencyClass,
    *,
    effect_may_have_left: bool,
    prior_unknown: bool,
    repeats: int,
    time_left: bool,
) -> Ending:
    """The ending of a claimed write or send.

    Args:
        effect_may_have_left: the watermark of this claim is set.
        prior_unknown: an earlier attempt under the same key ended unknown. A refusal of this attempt then says nothing about
            that one, so only a returned value settles the call.
        repeats: in-place repeats so far.
        time_left: the call's deadline is ahead.
    """
    match end:
        case HandlerEnd.RETURNED:
            return Ending.COMPLETE
        case (
            HandlerEnd.BUSINESS_REFUSAL
            | HandlerEnd.DEFINITE_REFUSAL
            | HandlerEnd.RETRYABLE_REFUSAL
            | HandlerEnd.NOT_STARTED
        ) if prior_unknown:
            return _unknown(cls, repeats=MAX_REPEATS, time_left=time_left)
        case HandlerEnd.BUSINESS_REFUSAL | HandlerEnd.DEFINITE_REFUSAL:
            return Ending.COMPLETE
        case HandlerEnd.RETRYABLE_REFUSAL | HandlerEnd.NOT_STARTED:
            return Ending.RELEASE
        case HandlerEnd.RAISED | HandlerEnd.TIMED_OUT:
            if not effect_may_have_left:
                return Ending.RELEASE_AND_RAISE
            return _unknown(cls, repeats=repeats, time_left=time_left)
        case _ as never:
            assert_never(never)


def _unknown(cls: IdempotencyClass, *, repeats: int, time_left: bool) -> Ending:
    match cls:
        case IdempotencyClass.IDEMPOTENT | IdempotencyClass.READ_ONLY:
            return Ending.RELEASE_AND_RAISE
        case IdempotencyClass.CONDITIONAL:
            return Ending.REPEAT if repeats < MAX_REPEATS and time_left else Ending.HOLD
        case IdempotencyClass.NON_IDEMPOTENT:
            return Ending.SETTLE
        case _ as never:
            assert_never(never)


class Found(StrEnum):
    """What a call does about the claim it found."""

    NOTHING = "nothing"
    """No claim: go on."""
    COMPLETED = "completed"
    UNCERTAIN = "uncertain"
    CONFLICT = "conflict"
    IN_FLIGHT = "in_flight"
    TAKE_OVER = "take_over"
    """Its worker is gone and claiming again cannot repeat an effect."""
    SETTLE = "settle"
    """Its worker is gone and the effect may have happened: probe, else an operator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VendorWindow:
    """How much of a vendor's memory of a key must be left for a replay to be safe."""

    call_timeout_s: float


def found(row: JournalRow | None, *, request_hash: str, now: datetime, window: VendorWindow) -> Found:
    """Judge the journal row a preflight read (step 3 of a call, and the table's last row)."""
    if row is None:
        return Found.NOTHING
    if row.request_hash != request_hash:
        return Found.CONFLICT
    match row.state:
        case "completed":
            return Found.COMPLETED
        case "uncertain":
            return Found.UNCERTAIN
        case "processing":
            return Found.IN_FLIGHT if row.lease_live else _stale(row, now=now, window=window)
        case _ as never:
            assert_never(never)


def _stale(row: JournalRow, *, now: datetime, window: VendorWindow) -> Found:
    if row.effect_sent_at is None:
        return Found.TAKE_OVER
    match row.idempotency_class:
        case IdempotencyClass.IDEMPOTENT | IdempotencyClass.READ_ONLY:
            return Found.TAKE_OVER
        case IdempotencyClass.CONDITIONAL:
            remembered = timedelta(seconds=(row.vendor_key_ttl_s or 0) - window.call_timeout_s)
            return Found.TAKE_OVER if now < row.effect_sent_at + remembered else Found.SETTLE
        case IdempotencyClass.NON_IDEMPOTENT:
            return Found.SETTLE
        case _ as never:
            assert_never(never)
