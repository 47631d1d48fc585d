"""Asking a vendor again inside one call: only after a definite refusal that waiting mends, and never past the call's own time.

The budget is declared with the tool, so that registration can compare the whole of it with ``timeout_s``. A call that ended unknown
is not asked again here; that is the claim's to decide (ADR 0009).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agentic.contract.errors import ProgramFault
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import RetryableUpstreamError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryBudget:
    """How often and how long one call may ask its vendor.

    Attributes:
        attempts: requests at most, the first one among them.
        attempt_timeout_s: seconds each may take, from resolving the name to the last byte of the answer.
        backoff_s: seconds before the second request, doubled before each further one.
        max_wait_s: seconds at most between two; a vendor that asks for more is not waited for.

    Raises:
        ProgramFault: there is no attempt, no time for one, or a negative wait.
    """

    attempts: int = 3
    attempt_timeout_s: float = 5
    backoff_s: float = 0.5
    max_wait_s: float = 2

    def __post_init__(self) -> None:
        """Refuse a budget of no use."""
        if self.attempts < 1 or self.attempt_timeout_s <= 0 or self.backoff_s < 0 or self.max_wait_s < 0:
            raise ProgramFault(
                "a retry budget has at least one attempt, time for it, and waits of no less than 0 seconds"
            )

    @property
    def total_s(self) -> float:
        """Seconds the whole budget can take: every request to its limit and every wait to its longest."""
        return self.attempts * self.attempt_timeout_s + (self.attempts - 1) * self.max_wait_s

    def wait_s(self, done: int, asked_s: float | None) -> float | None:
        """Seconds before the next request; ``None`` when there is to be none.

        Args:
            done: requests made so far, from 1.
            asked_s: what the vendor asked for, if it did.
        """
        if done >= self.attempts or (asked_s is not None and asked_s > self.max_wait_s):
            return None
        backoff_s = min(self.backoff_s * 2.0 ** (done - 1), self.max_wait_s)
        return backoff_s if asked_s is None else max(asked_s, backoff_s)


async def asked_again(ctx: CallContext, budget: RetryBudget, once: Callable[[float], Awaitable[T]]) -> T:
    """What ``once`` returns, asked again while the vendor is busy and a whole further request still fits.

    Args:
        ctx: the call; its deadline bounds every request and every wait, so that the last refusal is always told.
        budget: what the tool declares as ``retries``.
        once: makes one request that must end by the monotonic second it is given; the same bytes and key each time (J7).

    Raises:
        RetryableUpstreamError: the last refusal; nothing happened.
        HandlerError: any other end of a request, at once.
    """
    done = 0
    while True:
        try:
            return await once(min(ctx.clock.monotonic() + budget.attempt_timeout_s, ctx.deadline))
        except RetryableUpstreamError as busy:
            done += 1
            wait_s = budget.wait_s(done, busy.retry_after_s)
            if wait_s is None or ctx.remaining_s < wait_s + budget.attempt_timeout_s or ctx.cancelled.is_set():
                raise
        await asyncio.sleep(wait_s)
