"""The row of a request."""

from decimal import Decimal

import pytest

from agentic.runtime.agent.agno.attempts import Attempt, describe
from agentic.runtime.agent.agno.scripted import ScriptedModel

MODEL = ScriptedModel()


def test_the_text_of_a_failure_is_bounded_and_on_one_line() -> None:
    text = describe(ValueError("line\n" * 1000), MODEL)
    assert len(text) < 450
    assert "\n" not in text


@pytest.mark.parametrize("cost", ["unknown", "NaN", "Infinity", -1, {}])
def test_a_cost_that_is_no_amount_is_left_out(cost: object) -> None:
    attempt = Attempt(MODEL)
    attempt.usage(type("Reported", (), {"cost": cost, "input_tokens": 3})())
    row = attempt.end()
    assert (row.cost, row.input_tokens, row.ok) == (None, 3, True)


def test_usage_that_is_reported_as_it_grows_counts_once() -> None:
    attempt = Attempt(MODEL)
    for tokens, cost in ((10, "0.01"), (20, "0.02"), (20, None)):
        attempt.usage(type("Reported", (), {"cost": cost, "input_tokens": 100, "output_tokens": tokens})())
    row = attempt.end()
    assert (row.input_tokens, row.output_tokens, row.cost) == (100, 20, Decimal("0.02"))
