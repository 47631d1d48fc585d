"""What the answer to a send means: it left, it surely did not, or nobody knows. Pure.

The vendor stores the first answer under a key, errors too, and gives it again for an hour. So an error that only may be one is asked
again under the same key, and a refusal that time mends raises the epoch, whose new key has no stored answer. A status that the
vendor's table does not have is unknown: guessing "not sent" sends twice.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agentic.contract.results import ErrorCode
from agentic.services.tools.handlers.email.nylas import FOREIGN_TOKEN, error_type, error_words, json_object
from agentic.services.tools.handlers.errors import (
    ConnectionUnusable,
    DefiniteRefusal,
    OutcomeUnknown,
    RetryableUpstreamError,
    UpstreamUnavailableError,
)
from agentic.services.tools.handlers.reply import Reply

_ACCEPTED = (200, 202)
_MAX_ID_CHARS = 500


class SentEmail(BaseModel):
    """Answer of ``email.send``. It left; an id is ``None`` when the provider did not say it."""

    message_id: str | None
    thread_id: str | None


def sent(reply: Reply, *, recipients: int, answers_another: bool, now: datetime) -> SentEmail:
    """The result of a send, for every status but 401, which is the connection's.

    Args:
        recipients: how many different people it was for.
        answers_another: the email names the message it answers, so a 404 may mean that one.
        now: with a zone, for a ``Retry-After`` that names a date.

    Raises:
        DefiniteRefusal: nothing left.
        OutcomeUnknown: it may have left, or part of it, or the first request under this key still runs.
    """
    content, said = json_object(reply), f"Nylas answered {reply.status}"
    if reply.status in _ACCEPTED:
        return _accepted(content)
    words = error_words(content)
    match reply.status:
        case 400 if error_type(content) == FOREIGN_TOKEN:
            raise DefiniteRefusal(said, code=ErrorCode.PERMISSION_REFUSED, external_text=words)
        case 400:
            raise DefiniteRefusal(said, code=ErrorCode.UPSTREAM_REFUSED, external_text=words)
        case 402 if recipients == 1:  # refused for at least one: of several, the others may have it
            raise DefiniteRefusal(said, code=ErrorCode.UPSTREAM_REFUSED, external_text=words)
        case 403:
            raise ConnectionUnusable(f"{said}: the mailbox may not send; connect it again with that right")
        case 404 if answers_another:
            raise DefiniteRefusal(said, code=ErrorCode.NOT_FOUND, external_text=words)
        case 404:
            raise ConnectionUnusable(f"{said}: there is no such mailbox; connect it again")
        case 423:
            raise UpstreamUnavailableError(f"{said}: the account is blocked there", external_text=words)
        case 429:
            raise RetryableUpstreamError(said, retry_after_s=reply.retry_after_s(now), external_text=words)
        case _:
            # 409 as well: another request under this key still runs, or one with other bytes was there first
            raise OutcomeUnknown(f"{said}; the email may have left", status=reply.status)


def _accepted(content: Mapping[str, Any]) -> SentEmail:
    data = content.get("data")
    data = data if isinstance(data, dict) else {}
    return SentEmail(message_id=_id(data.get("id")), thread_id=_id(data.get("thread_id")))


def _id(value: object) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= _MAX_ID_CHARS and value.isascii() and value.isprintable()
    return str(value) if fits else None
