"""A research vendor as data, and the one way to ask it: a request, asked again while the vendor is busy, read by its own table.

All of these calls are reads: a repeat changes nothing and may at worst be charged twice, so a lost answer counts as a busy vendor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.errors import (
    DefiniteRefusal,
    OutcomeUnknown,
    RetryableUpstreamError,
    UpstreamUnavailableError,
)
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply
from agentic.services.tools.handlers.research.decoding import decoded
from agentic.services.tools.handlers.research.faults import (
    AnswerTooLarge,
    AnswerUnreadable,
    BalanceSpent,
    CredentialRefused,
    RequestRefused,
)
from agentic.services.tools.handlers.retries import RetryBudget, asked_again

_MAX_WORDS = 500


class Meaning(StrEnum):
    """What a vendor's answer means for the call."""

    ANSWER = "answer"
    NOTHING = "nothing"
    """The vendor knows nothing of what was asked: a valid answer, and free."""
    BUSY = "busy"
    """It answers later."""
    UNAVAILABLE = "unavailable"
    """It cannot do this for this target, and waiting does not help."""
    SUPPRESSED = "suppressed"
    """The person it is about asked not to be processed."""
    CREDENTIAL = "credential"
    PAYMENT = "payment"
    REQUEST = "request"
    UNEXPECTED = "unexpected"
    """Not in the vendor's contract as we know it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A reply with its body decoded as far as it can be.

    Attributes:
        content: the JSON object of the body; empty when there is none.
        is_json: whether there was one.
    """

    reply: Reply
    content: Mapping[str, Any]
    is_json: bool


def asked_to_wait(answer: Answer, now: datetime) -> float | None:
    """Seconds of ``Retry-After``."""
    return answer.reply.retry_after_s(now)


@dataclass(frozen=True, kw_only=True, slots=True)
class Vendor:
    """What is known of a vendor.

    Attributes:
        name: as usage lines name it.
        key_header: the header its key travels in, never a URL.
        key_prefix: what stands before the key there.
        meaning: reads status, then code, never prose alone.
        words: what the vendor wrote about a refusal, if anything.
        wait_s: how long it asks to wait.
        retries: how often one call asks it. The whole budget fits into its tools' ``timeout_s``.
    """

    name: str
    key_header: str
    key_prefix: str = ""
    meaning: Callable[[Answer], Meaning]
    words: Callable[[Mapping[str, Any]], object]
    wait_s: Callable[[Answer, datetime], float | None] = asked_to_wait
    retries: RetryBudget


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A deployment's account with a vendor.

    Attributes:
        origin: where it is reached.
        key: in no repr.
        retries: the vendor's, or with other waits.
        dry_run: the key makes the vendor answer synthetic data.
    """

    vendor: Vendor
    origin: str
    key: str = field(repr=False)
    retries: RetryBudget
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request. ``body`` makes it a POST of JSON, ``None`` a GET."""

    path: str
    body: bytes | None = None


def by_status(table: Mapping[int, Meaning], status: int) -> Meaning:
    """The meaning of a status: the vendor's table, every other 5xx as busy, anything else as unexpected."""
    return table.get(status, Meaning.BUSY if status >= 500 else Meaning.UNEXPECTED)


async def ask(ctx: CallContext, account: Account, request: Request) -> Mapping[str, Any] | None:
    """The JSON object that the vendor answered; ``None`` when it knows nothing of what was asked.

    Raises:
        RetryableUpstreamError: it was busy, out of reach or silent each time it was asked.
        UpstreamUnavailableError: it cannot do this for the target.
        DefiniteRefusal: it may not tell.
        VendorFault: a person must repair something.
    """
    ctx.secrets = (*ctx.secrets, account.key)

    async def once(until: float) -> Mapping[str, Any] | None:
        return _read(account.vendor, await _exchange(ctx, account, request, until), ctx.clock.now())

    return await asked_again(ctx, account.retries, once)


async def _exchange(ctx: CallContext, account: Account, request: Request, until: float) -> Reply:
    vendor = account.vendor
    headers = {vendor.key_header: vendor.key_prefix + account.key, "accept": "application/json"}
    client = GovernedClient(origin=account.origin, headers=headers, deadline=until, clock=ctx.clock)
    async with client:
        try:
            if request.body is None:
                return await client.get(request.path)
            return await client.post_bytes(request.path, request.body, headers={"content-type": "application/json"})
        except OutcomeUnknown as lost:
            raise RetryableUpstreamError(f"{vendor.name}: the request was sent and no whole answer came back") from lost


def _read(vendor: Vendor, reply: Reply, now: datetime) -> Mapping[str, Any] | None:
    content = decoded(reply.body)
    answer = Answer(reply=reply, content=content or {}, is_json=content is not None)
    said = f"{vendor.name} answered {reply.status}"
    match vendor.meaning(answer):
        case Meaning.ANSWER:
            if reply.truncated:
                raise AnswerTooLarge(f"{said} with more than is read of one answer")
            if content is None:
                raise AnswerUnreadable(f"{said} with no JSON object")
            return content
        case Meaning.NOTHING:
            return None
        case Meaning.BUSY:
            wait_s, words = vendor.wait_s(answer, now), _words(vendor, answer)
            raise RetryableUpstreamError(f"{said}: ask later", retry_after_s=wait_s, external_text=words)
        case Meaning.UNAVAILABLE:
            raise UpstreamUnavailableError(f"{said}: not for this target", external_text=_words(vendor, answer))
        case Meaning.SUPPRESSED:
            raise DefiniteRefusal(
                f"{said}: the person asked not to be processed",
                code=ErrorCode.PERMISSION_REFUSED,
                external_text=_words(vendor, answer),
            )
        case Meaning.CREDENTIAL:
            raise CredentialRefused(f"{said}: the key is not accepted, or may not do this; give the deployment another")
        case Meaning.PAYMENT:
            raise BalanceSpent(f"{said}: its account has nothing left; pay the vendor")
        case Meaning.REQUEST:
            raise RequestRefused(f"{said}: it does not take the request as we build it")
        case Meaning.UNEXPECTED:
            raise AnswerUnreadable(f"{said}, which its contract does not have")
        case _ as never:
            assert_never(never)


def _words(vendor: Vendor, answer: Answer) -> str | None:
    words = vendor.words(answer.content)
    return words[:_MAX_WORDS] if isinstance(words, str) and words else None
