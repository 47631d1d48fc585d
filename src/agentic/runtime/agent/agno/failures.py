"""What a failure of a provider means for the run: another try later, or the end under a code that says what to mend (W4).

The status decides, and where a provider answers in the middle of a stream and has none left to give, its own word for the error.
"""

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agno.exceptions import ContextWindowExceededError, ModelAuthenticationError, ModelProviderError
from agno.models.base import Model

from agentic.runtime.agent.agno.attempts import describe
from agentic.runtime.agent.ports import FailureCode, TurnFailed

_TRANSIENT_CLIENT_STATUS = frozenset({408, 409, 425, 429})
_BY_STATUS: dict[int, FailureCode] = {
    401: "model_key_refused",
    402: "model_quota_spent",
    403: "model_not_permitted",
    404: "model_not_found",
}
_BY_WORD: dict[str, FailureCode] = {
    "context_length_exceeded": "context_too_long",
    "insufficient_quota": "model_quota_spent",
    "billing_hard_limit_reached": "model_quota_spent",
    "invalid_api_key": "model_key_refused",
    "model_not_found": "model_not_found",
    "authentication_error": "model_key_refused",
    "permission_error": "model_not_permitted",
    "not_found_error": "model_not_found",
    "billing_error": "model_quota_spent",
    "invalid_prompt": "model_refused",
    "invalid_request_error": "model_refused",
}
_TOO_LONG = re.compile(
    r"context[_ ](length|window)|maximum context|(prompt|input) (is )?too long|too many tokens|token count exceeds"
    r"|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
_REMEDY: dict[FailureCode, str] = {
    "model_unavailable": "The provider is down or busy; the run asks again by itself.",
    "model_key_refused": "The provider refused the key: set a valid one for this model.",
    "model_not_permitted": "The provider does not let this key use the model: grant it there, or name another model.",
    "model_not_found": "The provider does not know this model or address: check the model's name and its base URL.",
    "model_quota_spent": "The account at the provider has nothing left: raise its limit or pay there, then start the run again.",
    "context_too_long": "The run no longer fits into the model's context: start it again with less to read, or with a larger model.",
    "model_refused": "The provider refused the request: check the model's settings and its tools against what the provider says.",
    "model_error": "The model's answer could not be used; what happened is in the log of this worker.",
}


def failed(error: BaseException, model: Model) -> TurnFailed:
    """How a turn ended whose request failed with this error."""
    code = _code(error)
    message = f"{_REMEDY[code]} {describe(error, model)}"
    return TurnFailed(
        code=code, message=message, retry_after_s=retry_after_s(error) if code == "model_unavailable" else None
    )


def _code(error: BaseException) -> FailureCode:
    if isinstance(error, ContextWindowExceededError):
        return "context_too_long"
    if isinstance(error, ModelAuthenticationError):
        return "model_key_refused"
    if not isinstance(error, ModelProviderError):
        return "model_error"
    for word in _words(error):
        if word in _BY_WORD and not _is_vague(word, error.status_code):
            return _BY_WORD[word]
    status = error.status_code
    if status < 400 or status >= 500 or status in _TRANSIENT_CLIENT_STATUS:
        return "model_unavailable"
    if status in (400, 413, 422) and _TOO_LONG.search(str(error.message)):
        return "context_too_long"
    return _BY_STATUS.get(status, "model_refused")


def _is_vague(word: str, status: int) -> bool:
    """The type that every refused request has says nothing where the status says more; inside a stream it does not."""
    return word == "invalid_request_error" and 400 <= status < 500


def _words(error: BaseException) -> list[str]:
    """The provider's own words for the error, most exact first, from the exceptions behind it."""
    words = []
    for cause in _chain(error):
        words += [getattr(cause, name, None) for name in ("code", "type")]
        body = getattr(cause, "body", None)
        inner = body.get("error") if isinstance(body, dict) else None
        words += [inner.get(name) for name in ("code", "type")] if isinstance(inner, dict) else []
    return [word for word in words if isinstance(word, str)]


def retry_after_s(error: BaseException, *, now: datetime | None = None) -> float | None:
    """Seconds the provider asked to wait, from the response behind the error; ``None`` when it named none.

    A date is measured against the provider's own clock where the response holds it, else against ``now``.
    """
    for cause in _chain(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if headers is None:
            continue
        exact = _seconds(headers.get("retry-after-ms"))
        if exact is not None:
            return exact / 1000
        value = headers.get("retry-after")
        seconds = _seconds(value)
        if seconds is not None:
            return seconds
        until = _date(value)
        if until is not None:
            since = _date(headers.get("date")) or now or datetime.now(UTC)
            return max(0.0, (until - since).total_seconds())
    return None


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__
    return chain


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
