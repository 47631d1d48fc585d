"""What a provider's failure means for the run."""

from datetime import UTC, datetime
from typing import Any, get_args

import httpx
import pytest
from agno.exceptions import ContextWindowExceededError, ModelAuthenticationError, ModelProviderError

from agentic.runtime.agent.agno.failures import failed, retry_after_s
from agentic.runtime.agent.agno.reported import ProviderSaid
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.ports import FailureCode

MODEL = ScriptedModel()
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class VendorError(Exception):
    """What an SDK raises behind agno's error."""

    def __init__(self, code: str | None = None, type: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.type = type


def behind(status: int, code: str | None = None, type: str | None = None, message: str = "x") -> Exception:
    error = ModelProviderError(message, status)
    error.__cause__ = VendorError(code, type)
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelProviderError("down", 500), "model_unavailable"),
        (ModelProviderError("down", 529), "model_unavailable"),
        (ModelProviderError("slow down", 429), "model_unavailable"),
        (ModelProviderError("timeout", 408), "model_unavailable"),
        (behind(429, "rate_limit_exceeded", "requests"), "model_unavailable"),
        (behind(502, "server_error"), "model_unavailable"),
        (behind(429, "insufficient_quota", "insufficient_quota"), "model_quota_spent"),
        (ModelProviderError("pay", 402), "model_quota_spent"),
        (ModelProviderError("bad request", 400), "model_refused"),
        (ModelProviderError("max_tokens is not known here", 400), "model_refused"),
        (behind(502, None, "invalid_request_error"), "model_refused"),
        (ModelProviderError("no", 401), "model_key_refused"),
        (behind(401, "invalid_api_key", "invalid_request_error"), "model_key_refused"),
        (ModelProviderError("no", 403), "model_not_permitted"),
        (ModelProviderError("gone", 404), "model_not_found"),
        (behind(404, None, "invalid_request_error"), "model_not_found"),
        (ContextWindowExceededError("too long", 500), "context_too_long"),
        (behind(502, "context_length_exceeded"), "context_too_long"),
        (ModelProviderError("This model's maximum context length is 8192 tokens", 400), "context_too_long"),
        (ModelProviderError("prompt is too long: 210000 tokens > 200000 maximum", 400), "context_too_long"),
        (ProviderSaid("busy", "rate_limit_exceeded", model_name="m"), "model_unavailable"),
        (ProviderSaid("bad", "invalid_prompt", model_name="m"), "model_refused"),
        (ModelAuthenticationError("OPENAI_API_KEY not set"), "model_key_refused"),
        (behind(200, None, "overloaded_error"), "model_unavailable"),
        (behind(200, None, "invalid_request_error"), "model_refused"),
        (behind(200, None, "authentication_error"), "model_key_refused"),
        (ValueError("a bug"), "model_error"),
    ],
)
def test_a_failure_has_the_code_of_what_is_to_be_done(error: Exception, code: str) -> None:
    assert failed(error, MODEL).code == code


def test_every_failure_says_what_to_do_before_what_the_provider_said() -> None:
    said = {failed(error, MODEL).message for error in (behind(status) for status in (400, 401, 402, 403, 404, 500))}
    assert len(said) == 6 < len(get_args(FailureCode))
    assert all(": " in text and text.endswith("ModelProviderError: x") for text in said)


def answered(**headers: str) -> Exception:
    error = ModelProviderError("busy", 429)
    response: Any = httpx.Response(429, headers={name.replace("_", "-"): value for name, value in headers.items()})
    error.__cause__ = VendorError()
    error.__cause__.response = response  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "7", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry_after": "Sun, 01 Mar 2026 12:00:30 GMT", "date": "Sun, 01 Mar 2026 12:00:20 GMT"}, 10.0),
        ({"retry_after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_every_form_a_provider_writes_it(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(answered(**headers), now=NOW) == wait_s
