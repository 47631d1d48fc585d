"""The table "How a call ends", every cell of it, and what a call does about the claim it finds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from agentic.services.tools.endings import MAX_REPEATS, Ending, Found, HandlerEnd, VendorWindow, ending, found
from agentic.services.tools.models import IdempotencyClass
from agentic.services.tools.ports import JournalRow

IDEMPOTENT, CONDITIONAL, NON_IDEMPOTENT = (
    IdempotencyClass.IDEMPOTENT,
    IdempotencyClass.CONDITIONAL,
    IdempotencyClass.NON_IDEMPOTENT,
)
EFFECTS = (IDEMPOTENT, CONDITIONAL, NON_IDEMPOTENT)
UNKNOWN = (HandlerEnd.RAISED, HandlerEnd.TIMED_OUT)


def end(
    how: HandlerEnd,
    cls: IdempotencyClass,
    *,
    marked: bool = True,
    prior: bool = False,
    repeats: int = 0,
    time_left: bool = True,
) -> Ending:
    return ending(how, cls, effect_may_have_left=marked, prior_unknown=prior, repeats=repeats, time_left=time_left)


@pytest.mark.guarantee("J3", "J6")
@pytest.mark.parametrize("cls", EFFECTS)
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("how", "then"),
    [
        (HandlerEnd.RETURNED, Ending.COMPLETE),
        (HandlerEnd.BUSINESS_REFUSAL, Ending.COMPLETE),
        (HandlerEnd.DEFINITE_REFUSAL, Ending.COMPLETE),
        (HandlerEnd.RETRYABLE_REFUSAL, Ending.RELEASE),
        (HandlerEnd.NOT_STARTED, Ending.RELEASE),
    ],
)
def test_what_is_known_ends_the_same_in_every_class(
    cls: IdempotencyClass, marked: bool, how: HandlerEnd, then: Ending
) -> None:
    assert end(how, cls, marked=marked) is then


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize(("how", "cls"), list(product(UNKNOWN, EFFECTS)))
def test_an_unknown_end_before_the_watermark_had_no_effect(how: HandlerEnd, cls: IdempotencyClass) -> None:
    assert end(how, cls, marked=False) is Ending.RELEASE_AND_RAISE


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("how", UNKNOWN)
def test_an_unknown_end_after_the_watermark_is_released_replayed_or_asked_about(how: HandlerEnd) -> None:
    assert end(how, IDEMPOTENT) is Ending.RELEASE_AND_RAISE
    assert end(how, CONDITIONAL) is Ending.REPEAT
    assert end(how, NON_IDEMPOTENT) is Ending.SETTLE


@pytest.mark.guarantee("J7")
@pytest.mark.parametrize("how", UNKNOWN)
def test_a_conditional_call_is_repeated_at_most_twice_and_only_while_there_is_time(how: HandlerEnd) -> None:
    assert [end(how, CONDITIONAL, repeats=n, prior=n > 0) for n in range(4)] == [
        *[Ending.REPEAT] * MAX_REPEATS,
        Ending.HOLD,
        Ending.HOLD,
    ]
    assert end(how, CONDITIONAL, time_left=False) is Ending.HOLD


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize(
    "how",
    [
        HandlerEnd.BUSINESS_REFUSAL,
        HandlerEnd.DEFINITE_REFUSAL,
        HandlerEnd.RETRYABLE_REFUSAL,
        HandlerEnd.NOT_STARTED,
    ],
)
def test_a_refusal_says_nothing_about_an_earlier_attempt_that_ended_unknown(how: HandlerEnd) -> None:
    """The vendor refuses the second request; the first may have arrived all the same."""
    assert end(how, CONDITIONAL, prior=True) is Ending.HOLD
    assert end(how, NON_IDEMPOTENT, prior=True) is Ending.SETTLE


@pytest.mark.parametrize("cls", EFFECTS)
def test_a_returned_value_settles_whatever_went_before(cls: IdempotencyClass) -> None:
    assert end(HandlerEnd.RETURNED, cls, prior=True, repeats=2, time_left=False) is Ending.COMPLETE


@pytest.mark.guarantee("J3")
def test_no_unknown_end_of_a_call_that_must_not_repeat_ever_lets_it_run_again() -> None:
    for how, prior, repeats, time_left in product(UNKNOWN, (False, True), range(3), (False, True)):
        assert end(how, NON_IDEMPOTENT, prior=prior, repeats=repeats, time_left=time_left) is Ending.SETTLE


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WINDOW = VendorWindow(call_timeout_s=30)
STALE = JournalRow(
    state="processing",
    request_hash="h",
    epoch=1,
    attempt=1,
    lease_live=False,
    lease_expires_at=NOW - timedelta(seconds=1),
    idempotency_class=NON_IDEMPOTENT,
    effect_sent_at=NOW - timedelta(seconds=100),
    vendor_key_ttl_s=None,
    output=None,
    span_id=None,
)


def judged(row: JournalRow | None, *, request_hash: str = "h") -> Found:
    return found(row, request_hash=request_hash, now=NOW, window=WINDOW)


@pytest.mark.guarantee("J2")
def test_a_key_that_nobody_claimed_lets_the_call_go_on() -> None:
    assert judged(None) is Found.NOTHING


@pytest.mark.parametrize("state", ["processing", "completed", "uncertain"])
def test_another_request_under_the_key_is_a_conflict_whatever_its_state(state: str) -> None:
    assert judged(replace(STALE, state=state), request_hash="other") is Found.CONFLICT  # type: ignore[arg-type]


@pytest.mark.guarantee("J1", "J2")
def test_a_finished_call_answers_an_uncertain_one_stays_so_and_a_live_one_is_in_flight() -> None:
    assert judged(replace(STALE, state="completed")) is Found.COMPLETED
    assert judged(replace(STALE, state="uncertain")) is Found.UNCERTAIN
    for cls in EFFECTS:
        assert judged(replace(STALE, lease_live=True, idempotency_class=cls)) is Found.IN_FLIGHT


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("cls", EFFECTS)
def test_a_claim_whose_worker_died_before_the_watermark_is_taken_over(cls: IdempotencyClass) -> None:
    assert judged(replace(STALE, effect_sent_at=None, idempotency_class=cls)) is Found.TAKE_OVER


@pytest.mark.guarantee("J3")
def test_a_claim_whose_worker_died_after_the_watermark_follows_its_class() -> None:
    assert judged(replace(STALE, idempotency_class=IDEMPOTENT)) is Found.TAKE_OVER
    assert judged(STALE) is Found.SETTLE


@pytest.mark.guarantee("J3", "J7")
@pytest.mark.parametrize(
    ("sent_s_ago", "then"),
    [(0, Found.TAKE_OVER), (3569, Found.TAKE_OVER), (3570, Found.SETTLE), (3600, Found.SETTLE), (90000, Found.SETTLE)],
)
def test_a_vendor_key_is_used_again_only_while_the_whole_call_fits_the_vendor_s_memory(
    sent_s_ago: int, then: Found
) -> None:
    row = replace(
        STALE,
        idempotency_class=CONDITIONAL,
        vendor_key_ttl_s=3600,
        effect_sent_at=NOW - timedelta(seconds=sent_s_ago),
    )
    assert judged(row) is then
