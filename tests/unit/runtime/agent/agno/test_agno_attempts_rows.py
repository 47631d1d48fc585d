"""What a provider's failure means for the run."""

import pytest
from agno.exceptions import ContextWindowExceededError, ModelAuthenticationError, ModelProviderError

from agentic.runtime.agent.agno.attempts import Attempt, describe, failed
from agentic.runtime.agent.agno.scripted import ScriptedModel

MODEL = ScriptedModel()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelProviderError("down", 500), "model_unavailable"),
        (ModelProviderError("down", 529), "model_unavailable"),
        (ModelProviderError("slow down", 429), "model_unavailable"),
        (ModelProviderError("timeout", 408), "model_unavailable"),
        (ModelProviderError("bad request", 400), "model_refused"),
        (ModelProviderError("gone", 404), "model_refused"),
        (ContextWindowExceededError("too long", 500), "model_refused"),
        (ModelAuthenticationError("OPENAI_API_KEY not set"), "model_refused"),
        (ValueError("a bug"), "model_error"),
    ],
)
def test_a_failure_is_worth_another_try_refused_or_broken(error: Exception, code: str) -> None:
    assert failed(error, MODEL).code == code


def test_the_text_of_a_failure_is_bounded_and_on_one_line() -> None:
    text = describe(ValueError("line\n" * 1000), MODEL)
    assert len(text) < 450
    assert "\n" not in text


def test_a_cost_that_is_no_number_is_left_out() -> None:
    attempt = Attempt(MODEL)
    attempt.usage(type("Reported", (), {"cost": "unknown", "input_tokens": 3})())
    row = attempt.end()
    assert (row.cost, row.input_tokens, row.ok) == (None, 3, True)
