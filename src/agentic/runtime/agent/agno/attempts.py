"""One row for each request to a provider, failed ones included, and what a failure means for the run (M1)."""

import time
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from agno.exceptions import ContextWindowExceededError, ModelAuthenticationError, ModelProviderError, redact_secrets
from agno.models.base import Model

from agentic.runtime.agent.ports import ModelAttempt, TurnFailed

_MAX_ERROR = 400
_CACHE_APART = ("agno.models.anthropic",)
"""Where the provider counts what it read from or wrote to its cache beside the input tokens, not among them."""
_REASONING_APART = ("agno.models.google",)
"""Where it counts the tokens of its reasoning beside the output tokens; the others have them among those."""
_TRANSIENT_CLIENT_STATUS = frozenset({408, 409, 425, 429})


class Attempt:
    """A request under way; becomes one ``ModelAttempt`` when it ends."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._started_at = datetime.now(UTC)
        self._clock = time.monotonic()
        self._tokens = {"input": 0, "output": 0, "cached": 0, "written": 0, "reasoning": 0}
        self._cost: Decimal | None = None

    def usage(self, reported: Any) -> None:
        """Add what the provider reported; agno's metrics, several times a stream for some providers."""
        for name, field in (
            ("input", "input_tokens"),
            ("output", "output_tokens"),
            ("cached", "cache_read_tokens"),
            ("written", "cache_write_tokens"),
            ("reasoning", "reasoning_tokens"),
        ):
            self._tokens[name] += max(0, getattr(reported, field, 0) or 0)
        cost = getattr(reported, "cost", None)
        if cost is not None:
            try:
                more = Decimal(str(cost))
            except InvalidOperation:
                return
            if more.is_finite() and more >= 0:  # anything else is no report: prices count, or nobody can
                self._cost = (self._cost or Decimal(0)) + more

    def end(self, error: BaseException | None = None) -> ModelAttempt:
        """The row of this attempt, its tokens counted the same way for every provider."""
        tokens = self._tokens
        cache_apart = tokens["cached"] + tokens["written"] if _of(self._model, _CACHE_APART) else 0
        reasoning_apart = tokens["reasoning"] if _of(self._model, _REASONING_APART) else 0
        return ModelAttempt(
            model=self._model.id,
            provider=self._model.provider or self._model.name or type(self._model).__name__,
            ok=error is None,
            started_at=self._started_at,
            duration_s=time.monotonic() - self._clock,
            input_tokens=tokens["input"] + cache_apart,
            output_tokens=tokens["output"] + reasoning_apart,
            cached_tokens=tokens["cached"],
            reasoning_tokens=tokens["reasoning"],
            cost=self._cost,
            error=None if error is None else describe(error, self._model),
        )


def _of(model: Model, modules: tuple[str, ...]) -> bool:
    return any(kind.__module__.startswith(modules) for kind in type(model).__mro__)


def describe(error: BaseException, model: Model) -> str:
    """Class and text of a failure, bounded, without anything that looks like a credential or is this model's key (B2)."""
    text = str(error)
    for name in ("api_key", "auth_token"):
        secret = getattr(model, name, None)
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "[redacted]")
    text = " ".join(redact_secrets(text).split())
    if len(text) > _MAX_ERROR:
        text = text[:_MAX_ERROR] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def failed(error: BaseException, model: Model) -> TurnFailed:
    """What a provider's failure means: worth another try, refused, or broken."""
    message = describe(error, model)
    if isinstance(error, ContextWindowExceededError | ModelAuthenticationError):
        return TurnFailed(code="model_refused", message=message)
    if not isinstance(error, ModelProviderError):
        return TurnFailed(code="model_error", message=message)
    status = error.status_code
    if status >= 500 or status in _TRANSIENT_CLIENT_STATUS:
        return TurnFailed(code="model_unavailable", message=message, retry_after_s=_retry_after_s(error))
    return TurnFailed(code="model_refused", message=message)


def _retry_after_s(error: BaseException) -> float | None:
    """Seconds the provider asked to wait, from the response behind the error."""
    cause: BaseException | None = error
    while cause is not None:
        headers = getattr(getattr(cause, "response", None), "headers", None)
        value = None if headers is None else headers.get("retry-after")
        if value is not None:
            try:
                return max(0.0, float(value))
            except ValueError:
                return None
        cause = cause.__cause__
    return None
