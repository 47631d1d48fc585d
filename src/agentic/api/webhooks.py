"""``/api/v1/agentic/webhooks/{provider}``: the deliveries of providers, which carry a signature and no token.

Reports of a job come to ``/{job_id}`` below it; events of connected accounts to the address itself, which a provider may make sure of
first. A body is read up to a cap, and for a time, before anything is made of it. Only a delivery whose signature fails is charged to its
caller, so that a provider may deliver as fast as it likes.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.requests import ClientDisconnect

from agentic.api.errors import error_response
from agentic.contract.deliveries import Receipt
from agentic.contract.errors import NotFound
from agentic.services.connections.account_intake import AccountEventIntake
from agentic.services.provider_jobs.intake import WebhookIntake

MAX_BODY_BYTES = 2 * 1024 * 1024
BODY_S = 30.0
"""For all of a body; who has not sent it by then is not waited for, and what came of it is let go."""
_MAX_DIGITS = 9
ACCOUNTS_PATH = "/api/v1/agentic/webhooks/{provider}"
PATH = f"{ACCOUNTS_PATH}/{{job_id}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureLimits:
    """How many failed signatures one caller has, and of how many callers that is remembered.

    Attributes:
        burst: failures at once.
        per_minute: how many come back in a minute.
        callers: addresses remembered; the ones longest unseen are forgotten.
    """

    burst: int = 30
    per_minute: float = 30
    callers: int = 10_000


class FailedSignatures:
    """A bucket for each caller's address, in this process."""

    def __init__(self, limits: FailureLimits, *, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spent(self, caller: str) -> bool:
        """Whether the caller has failed too often just now."""
        return self._of(caller) < 1

    def charge(self, caller: str) -> None:
        """One more failure."""
        self._left[caller] = (max(0.0, self._of(caller) - 1), self._now())
        self._left.move_to_end(caller)
        while len(self._left) > self._limits.callers:
            self._left.popitem(last=False)

    def _of(self, caller: str) -> float:
        left, at = self._left.get(caller, (float(self._limits.burst), self._now()))
        return min(float(self._limits.burst), left + (self._now() - at) * self._limits.per_minute / 60)


def webhook_routes(jobs: WebhookIntake, accounts: AccountEventIntake, limits: FailureLimits | None = None) -> APIRouter:
    """Build the routes."""
    router = APIRouter()
    failed = FailedSignatures(limits or FailureLimits())

    async def report(request: Request) -> Response:
        provider, job_id = request.path_params["provider"], request.path_params["job_id"]
        if not jobs.knows(provider):
            raise NotFound("there is no such provider here")
        return await _received(request, failed, partial(jobs.receive, provider, job_id))

    async def event(request: Request) -> Response:
        provider = request.path_params["provider"]
        if not accounts.knows(provider):
            raise NotFound("there is no such provider here")
        return await _received(request, failed, partial(accounts.receive, provider))

    async def challenge(request: Request) -> Response:
        answer = accounts.challenge(request.path_params["provider"], request.query_params)
        if answer is None:
            return error_response(
                400, "no_challenge", "this address takes events, and a question by which it is made sure of"
            )
        return PlainTextResponse(answer, headers={"X-Content-Type-Options": "nosniff"})

    # plain routes: nothing of a delivery is the framework's to parse, and doing so costs as much as the rest of the request
    router.add_route(PATH, report, methods=["POST"])
    router.add_route(ACCOUNTS_PATH, event, methods=["POST"])
    router.add_route(ACCOUNTS_PATH, challenge, methods=["GET"])
    return router


async def _received(
    request: Request, failed: FailedSignatures, receive: Callable[[bytes, Mapping[str, str]], Awaitable[Receipt]]
) -> Response:
    caller = request.client.host if request.client is not None else ""
    if failed.spent(caller):
        return error_response(429, "too_many_failures", "too many signatures failed", {"Retry-After": "60"})
    try:
        body = await _body(request)
    except ClientDisconnect:
        return error_response(400, "cut_off", "the body is not whole")
    except TimeoutError:
        return error_response(
            408, "too_slow", f"the body did not come within {BODY_S:g} seconds", {"Connection": "close"}
        )
    if body is None:
        return error_response(413, "too_large", f"the body is larger than {MAX_BODY_BYTES // 1024} KiB")
    receipt = await receive(body, dict(request.headers))
    match receipt:
        case Receipt.TAKEN:
            return JSONResponse({"received": True})
        case Receipt.NOT_SIGNED:
            failed.charge(caller)
            return error_response(401, "not_signed", "the signature is not good")
        case Receipt.UNREADABLE:
            return error_response(400, "unreadable", "the body is not what this provider documents")
        case _ as never:
            assert_never(never)


async def _body(request: Request) -> bytes | None:
    """The bytes as they came; ``None`` when there are too many, whether or not their number was said before.

    Raises:
        ClientDisconnect: the sender left before the end.
        TimeoutError: they did not all come in time.
    """
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > _MAX_DIGITS or int(declared) > MAX_BODY_BYTES):
        return None
    body = bytearray()
    async with asyncio.timeout(BODY_S):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
    return bytes(body)
