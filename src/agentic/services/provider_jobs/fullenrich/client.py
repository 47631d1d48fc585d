"""The two requests to FullEnrich: one that submits, sent once and never again, and one that asks."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from agentic.contract.clock import Clock
from agentic.contract.deliveries import Unreadable
from agentic.contract.delivery_body import object_of
from agentic.contract.results import ErrorCode
from agentic.services.provider_jobs.fullenrich.account import BULK_PATH, FullEnrichAccount
from agentic.services.provider_jobs.fullenrich.wire import report_of, vendor_id
from agentic.services.provider_jobs.models import JobReport
from agentic.services.tools.handlers.errors import (
    DefiniteRefusal,
    OutcomeUnknown,
    RetryableUpstreamError,
    UpstreamUnavailableError,
)
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply

_BUSY_S = 60.0
"""What the provider asks to wait; it sends no ``Retry-After``."""
_JSON = {"content-type": "application/json"}


async def submit(
    account: FullEnrichAccount,
    body: Mapping[str, Any],
    *,
    before_first_byte: Callable[[], Awaitable[None]],
    deadline: float,
    clock: Clock,
) -> str:
    """Send a batch, once; the provider's id of it.

    Raises:
        DefiniteRefusal: the provider surely did not take it.
        OutcomeUnknown: nobody can tell.
    """
    client = GovernedClient(
        origin=account.origin,
        headers=_headers(account),
        before_first_byte=before_first_byte,
        deadline=deadline,
        clock=clock,
    )
    async with client:
        reply = await client.post_bytes(BULK_PATH, json.dumps(body).encode(), headers=_JSON)
    if not 200 <= reply.status < 300:
        raise _refused(reply.status)
    try:
        return vendor_id(object_of(reply.body).get("enrichment_id"))
    except Unreadable:
        raise OutcomeUnknown("fullenrich took the batch and named no id of it", status=reply.status) from None


async def ask(account: FullEnrichAccount, provider_job_id: str) -> JobReport | None:
    """How a batch stands; ``None`` when the provider is not ready to say, or knows it no more.

    Raises:
        HandlerError: it was not reached, is busy, or does not take the key.
        Unreadable: its answer is not what it documents.
    """
    async with GovernedClient(origin=account.origin, headers=_headers(account)) as client:
        reply = await client.get(f"{BULK_PATH}/{quote(provider_job_id, safe='')}")
    if reply.status in (200, 402):  # 402 carries a whole result: the account ran dry
        return report_of(object_of(reply.body))
    if reply.status == 404 or (reply.status == 400 and _code(reply) == "error.enrichment.in_progress"):
        return None
    raise _refused(reply.status)


def _headers(account: FullEnrichAccount) -> dict[str, str]:
    return {"authorization": f"Bearer {account.key}", "accept": "application/json"}


def _refused(status: int) -> DefiniteRefusal | OutcomeUnknown:
    said = f"fullenrich answered {status}"
    if status == 429:
        return RetryableUpstreamError(f"{said}: ask later", retry_after_s=_BUSY_S)
    if status in (401, 403):
        return UpstreamUnavailableError(f"{said}: the key is not accepted; give the deployment another")
    if status == 402:
        return UpstreamUnavailableError(f"{said}: its account has nothing left; pay the provider")
    if 400 <= status < 500:
        return DefiniteRefusal(f"{said}: it does not take this batch", code=ErrorCode.INVALID_INPUT)
    return OutcomeUnknown(f"{said}, which says nothing about the batch", status=status)


def _code(reply: Reply) -> object:
    try:
        return object_of(reply.body).get("code")
    except Unreadable:
        return None
