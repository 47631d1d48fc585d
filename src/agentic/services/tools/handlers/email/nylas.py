"""Nylas v3: where a mailbox is, what an error says, and how the reads ask. What the answer to a send means is ``sending``'s."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from agentic.contract.errors import ProgramFault
from agentic.contract.results import ErrorCode
from agentic.services.tools.context import CallContext
from agentic.services.tools.handlers.egress import Origin
from agentic.services.tools.handlers.errors import (
    ConnectionUnusable,
    DefiniteRefusal,
    OutcomeUnknown,
    RetryableUpstreamError,
    UpstreamUnavailableError,
)
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply
from agentic.services.tools.handlers.retries import RetryBudget, asked_again

NYLAS = "nylas"
"""Provider key of the connections that the email tools use."""
US_ORIGIN, EU_ORIGIN = "https://api.us.nylas.com", "https://api.eu.nylas.com"
"""An application lives in one region; the other one answers 401."""
GRANT_FACT = "grant_id"
"""The fact of a connection that names its mailbox, for an application's key, which reaches all of them."""
FOREIGN_TOKEN = "token.unauthorized_access"  # noqa: S105 - a word of the vendor's, not a credential
_OWN_GRANT = "me"
"""The mailbox of the token itself, for a token that is one mailbox's own."""
_GRANT = re.compile(r"[A-Za-z0-9@:_+-][A-Za-z0-9@:_+.-]{0,199}")
_MAX_WORDS = 500


def nylas_origin(environment: Mapping[str, str] = os.environ) -> str:
    """Where Nylas is reached: what ``NYLAS_ORIGIN`` says, one of its regions or a stand-in on this machine; else its region US.

    Raises:
        ProgramFault: any other address. A key goes to its vendor or nowhere.
    """
    origin = environment.get("NYLAS_ORIGIN") or US_ORIGIN
    if origin not in (US_ORIGIN, EU_ORIGIN) and not Origin.parse(origin).loopback:
        raise ProgramFault(
            f"NYLAS_ORIGIN is {US_ORIGIN} or {EU_ORIGIN}; only a stand-in on this machine may take its place"
        )
    return origin


def is_mailbox(grant: str) -> bool:
    """Whether a text can name a mailbox at Nylas, and so stand in a path: a grant's id, or an address."""
    return _GRANT.fullmatch(grant) is not None


def messages_path(ctx: CallContext) -> str:
    """The path of the messages of the mailbox that the call's connection stands for.

    Raises:
        ConnectionUnusable: the connection names a mailbox in a way that no path may have.
    """
    grant = ctx.connection.account.get(GRANT_FACT, _OWN_GRANT)
    if not is_mailbox(grant):
        raise ConnectionUnusable(
            f"the connection's fact {GRANT_FACT} is no id of a mailbox; connect it with the right one"
        )
    return f"/v3/grants/{quote(grant, safe='')}/messages"


def json_object(reply: Reply) -> Mapping[str, Any]:
    """The JSON object of an answer; empty when there is none."""
    try:
        content = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def error_type(content: Mapping[str, Any]) -> str:
    """The error's type without ``api.``, with and without which the vendor writes it; empty when there is none."""
    kind = _error(content).get("type")
    return kind.removeprefix("api.") if isinstance(kind, str) else ""


def error_words(content: Mapping[str, Any]) -> str | None:
    """What the vendor says of the error: prose that changes, so nothing is decided by it."""
    words = _error(content).get("message")
    return words[:_MAX_WORDS] if isinstance(words, str) and words else None


def _error(content: Mapping[str, Any]) -> Mapping[str, Any]:
    error = content.get("error")
    return error if isinstance(error, dict) else {}


async def ask(
    ctx: CallContext, origin: str, path: str, *, retries: RetryBudget, missing: ErrorCode
) -> Mapping[str, Any]:
    """The JSON object that a read answers, asked again while the vendor is busy.

    Args:
        path: with its query, escaped.
        missing: what a 404 means: ``not_found`` for a message, ``connection_expired`` where only the mailbox can be missing.

    Raises:
        RetryableUpstreamError: it was busy, out of reach or silent each time it was asked.
        DefiniteRefusal: of the account, the message or the question; or what came is no answer we know.
    """

    async def once(until: float) -> Mapping[str, Any]:
        reply = await _get(ctx, origin, path, until)
        if reply.status == 401:
            raise await ctx.connection.rejected()
        return _read(ctx, reply, missing)

    return await asked_again(ctx, retries, once)


async def _get(ctx: CallContext, origin: str, path: str, until: float) -> Reply:
    async with GovernedClient(
        origin=origin,
        headers={"accept": "application/json"},
        auth=ctx.connection.authorize,
        deadline=until,
        clock=ctx.clock,
    ) as client:
        try:
            return await client.get(path)
        except OutcomeUnknown as lost:  # a read changes nothing, so a lost answer is a busy vendor
            raise RetryableUpstreamError("Nylas: the question was sent and no whole answer came back") from lost


def _read(ctx: CallContext, reply: Reply, missing: ErrorCode) -> Mapping[str, Any]:
    content, said = json_object(reply), f"Nylas answered {reply.status}"
    words = error_words(content)
    match reply.status:
        case 200 if reply.truncated:
            raise DefiniteRefusal(f"{said} with more than is read of one answer", code=ErrorCode.OUTPUT_TOO_LARGE)
        case 200 if content:
            return content
        case 400 if error_type(content) == FOREIGN_TOKEN:
            raise DefiniteRefusal(said, code=ErrorCode.PERMISSION_REFUSED, external_text=words)
        case 400:
            raise DefiniteRefusal(said, code=ErrorCode.UPSTREAM_REFUSED, external_text=words)
        case 403:
            raise ConnectionUnusable(f"{said}: the mailbox does not let it read; connect it again with that right")
        case 404:
            raise DefiniteRefusal(said, code=missing)
        case 429:
            raise RetryableUpstreamError(said, retry_after_s=reply.retry_after_s(ctx.clock.now()), external_text=words)
        case status if status >= 500:
            raise RetryableUpstreamError(said, external_text=words)
        case _:
            raise UpstreamUnavailableError(f"{said}, which is no answer to a read", external_text=words)
