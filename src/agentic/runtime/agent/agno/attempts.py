"""One row for each request to a provider, failed ones included (M1)."""

import time
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from agno.exceptions import redact_secrets
from agno.models.base import Model

from agentic.runtime.agent.ports import ModelAttempt

_MAX_ERROR = 400
_CACHE_APART = ("agno.models.anthropic",)
"""Where the provider counts what it read from or wrote to its cache beside the input tokens, not among them."""
_REASONING_APART = ("agno.models.google",)
"""Where it counts the tokens of its reasoning beside the output tokens; the others have them among those."""


class Attempt:
    """A request under way; becomes one ``ModelAttempt`` when it ends."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._started_at = datetime.now(UTC)
        self._clock = time.monotonic()
        self._tokens = {"input": 0, "output": 0, "cached": 0, "written": 0, "reasoning": 0}
        self._cost: Decimal | None = None

    def usage(self, reported: Any) -> None:
        """Take in what the provider reported; agno's metrics.

        Providers that report several times in a stream say what the request has come to so far, so the highest number of each kind
        is what counts; adding them up would bill the same tokens again and again.
        """
        for name, field in (
            ("input", "input_tokens"),
            ("output", "output_tokens"),
            ("cached", "cache_read_tokens"),
            ("written", "cache_write_tokens"),
            ("reasoning", "reasoning_tokens"),
        ):
            self._tokens[name] = max(self._tokens[name], getattr(reported, field, 0) or 0)
        cost = _decimal(getattr(reported, "cost", None))
        if cost is not None:  # anything else is no report: prices count, or nobody can
            self._cost = cost if self._cost is None else max(self._cost, cost)

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
    for secret in secrets(model):
        text = text.replace(secret, "[redacted]")
    text = " ".join(redact_secrets(text).split())
    if len(text) > _MAX_ERROR:
        text = text[:_MAX_ERROR] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def secrets(model: Model) -> list[str]:
    """The credentials a model object holds."""
    held = [getattr(model, name, None) for name in ("api_key", "auth_token")]
    return [secret for secret in held if isinstance(secret, str) and secret]


def _decimal(cost: object) -> Decimal | None:
    """An amount as the provider wrote it; ``None`` for what is none."""
    if cost is None:
        return None
    try:
        amount = Decimal(str(cost))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None
