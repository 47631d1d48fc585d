"""Asking a vendor again: only after a definite refusal, only while a whole request still fits, and told before the invoker gives up."""

from uuid import uuid4

import pytest

from agentic.contract.errors import ProgramFault
from agentic.contract.principal import Principal
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import OutcomeUnknown, RetryableUpstreamError, UpstreamUnavailableError
from agentic.services.tools.handlers.retries import RetryBudget, asked_again
from agentic.testing import FakeClock

AT_ONCE = RetryBudget(attempts=3, attempt_timeout_s=5, backoff_s=0, max_wait_s=1)


async def nothing() -> None:
    return


def call(*, remaining_s: float = 60) -> CallContext:
    clock = FakeClock()
    return CallContext(
        principal=Principal(organization_id=uuid4(), user_id=None),
        run_id=uuid4(),
        tool="search.web",
        idempotency_key=None,
        attempt=1,
        timeout_s=remaining_s,
        deadline=clock.monotonic() + remaining_s,
        clock=clock,
        before_first_byte=nothing,
    )


class Vendor:
    """Ends its requests as it is told; the last end stays."""

    def __init__(self, *ends: Exception | str) -> None:
        self.ends = list(ends)
        self.deadlines: list[float] = []

    async def __call__(self, deadline: float) -> str:
        self.deadlines.append(deadline)
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, Exception):
            raise end
        return end


BUSY = RetryableUpstreamError("throttled")


async def test_a_busy_vendor_is_asked_again_until_it_answers() -> None:
    vendor = Vendor(BUSY, BUSY, "found")
    assert await asked_again(call(), AT_ONCE, vendor) == "found"
    assert len(vendor.deadlines) == 3


@pytest.mark.guarantee("J6")
async def test_an_exhausted_budget_tells_the_last_refusal() -> None:
    vendor = Vendor(BUSY)
    with pytest.raises(RetryableUpstreamError):
        await asked_again(call(), AT_ONCE, vendor)
    assert len(vendor.deadlines) == 3


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("end", [OutcomeUnknown("sent"), UpstreamUnavailableError("no such host"), ValueError("bug")])
async def test_any_other_end_is_told_at_once(end: Exception) -> None:
    vendor = Vendor(end)
    with pytest.raises(type(end)):
        await asked_again(call(), AT_ONCE, vendor)
    assert len(vendor.deadlines) == 1


async def test_each_request_has_its_share_and_none_outlives_the_call() -> None:
    ctx = call(remaining_s=7)
    vendor = Vendor(BUSY)
    with pytest.raises(RetryableUpstreamError):
        await asked_again(ctx, AT_ONCE, vendor)
    now = ctx.clock.monotonic()
    assert vendor.deadlines == [now + 5] * 3
    late = call(remaining_s=3)
    vendor = Vendor(BUSY)
    with pytest.raises(RetryableUpstreamError):
        await asked_again(late, AT_ONCE, vendor)
    assert vendor.deadlines == [late.deadline]  # no whole further request fits


async def test_a_vendor_that_asks_for_longer_than_the_budget_waits_is_not_waited_for() -> None:
    vendor = Vendor(RetryableUpstreamError("throttled", retry_after_s=2))
    with pytest.raises(RetryableUpstreamError):
        await asked_again(call(), AT_ONCE, vendor)
    assert len(vendor.deadlines) == 1


async def test_a_run_that_is_being_cancelled_asks_no_more() -> None:
    ctx = call()
    ctx.cancelled.set()
    vendor = Vendor(BUSY)
    with pytest.raises(RetryableUpstreamError):
        await asked_again(ctx, AT_ONCE, vendor)
    assert len(vendor.deadlines) == 1


def test_waits_double_up_to_the_longest_and_a_shorter_wish_of_the_vendor_does_not_shorten_them() -> None:
    budget = RetryBudget(attempts=5, backoff_s=0.5, max_wait_s=1.5)
    assert [budget.wait_s(done, None) for done in (1, 2, 3, 4, 5)] == [0.5, 1, 1.5, 1.5, None]
    assert budget.wait_s(1, 0.1) == 0.5
    assert budget.wait_s(1, 1.2) == 1.2


def test_the_budget_counts_every_request_and_every_wait() -> None:
    assert RetryBudget(attempts=3, attempt_timeout_s=5, backoff_s=0.5, max_wait_s=2).total_s == 19


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"attempt_timeout_s": 0}, {"backoff_s": -1}, {"max_wait_s": -1}])
def test_a_budget_of_no_use_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ProgramFault, match="retry budget"):
        RetryBudget(**wrong)
