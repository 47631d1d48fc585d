"""What the mail provider's answer to a send means: sent, surely not sent, or nobody knows.

Of the provider's table, with its error types stripped of ``api.``. A status that is not in it is unknown: guessing "not sent" sends twice.
"""

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agentic.contract.results import ErrorCode
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown, RetryableUpstreamError
from agentic.services.tools.handlers.reply import Reply

_REFUSED = {
    400: ErrorCode.UPSTREAM_REFUSED,
    401: ErrorCode.CONNECTION_EXPIRED,
    402: ErrorCode.UPSTREAM_REFUSED,
    403: ErrorCode.CONNECTION_EXPIRED,
    404: ErrorCode.UPSTREAM_REFUSED,
    413: ErrorCode.UPSTREAM_REFUSED,
    423: ErrorCode.UPSTREAM_REFUSED,
}
_MISMATCH = "invalid_idempotent_request"
_MAX_TEXT = 500


class EmailSent(BaseModel):
    """Result of ``email.send``."""

    id: str | None
    """The provider's id; ``None`` when its answer did not say."""
    to: str
    answered_from_key: bool
    """The provider had accepted this very request before and answered again without sending."""


def read_answer(reply: Reply, *, to: str, now: datetime) -> EmailSent:
    """The result of a send, or the exception that says what surely happened.

    Raises:
        DefiniteRefusal: the provider refused; nothing was sent.
        RetryableUpstreamError: it is throttling; nothing was sent.
        OutcomeUnknown: it may have been sent: an error behind the provider, or the first request under this key still runs.
    """
    content = _json(reply.body)
    if reply.status in (200, 202):
        data = content.get("data")
        message_id = data.get("id") if isinstance(data, dict) else None
        return EmailSent(
            id=message_id if isinstance(message_id, str) and message_id else None,
            to=to,
            answered_from_key=reply.headers.get("idempotent-response", "").lower() == "true",
        )
    kind, words = _error(content)
    said = f"the mail provider answered {reply.status}"
    if reply.status == 429:
        raise RetryableUpstreamError(said, retry_after_s=reply.retry_after_s(now), external_text=words)
    if reply.status in _REFUSED:
        raise DefiniteRefusal(said, code=_REFUSED[reply.status], external_text=words)
    if reply.status == 409 and kind == _MISMATCH:
        raise DefiniteRefusal(said, code=ErrorCode.CONFLICT, external_text=words)
    raise OutcomeUnknown(f"{said}; the email may have been sent", status=reply.status)


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _error(content: dict[str, Any]) -> tuple[str, str | None]:
    error = content.get("error")
    if not isinstance(error, dict):
        return "", None
    message = error.get("message")
    return str(error.get("type") or "").removeprefix("api."), message[:_MAX_TEXT] if isinstance(message, str) else None
