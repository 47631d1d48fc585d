"""Why a provider stopped, and whether that was the end."""

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from agentic.runtime.agent.agno.stop_reasons import is_whole, stop_reason


class Finish(Enum):
    """A reason as an enumeration, as Gemini's SDK has it."""

    STOP = "STOP"


def _event(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (_event(choices=[_event(finish_reason="tool_calls")]), "tool_calls"),
        (_event(choices=[_event(finish_reason=None)]), None),
        (_event(choices=[], usage={}), None),
        (_event(type="response.completed", response=_event(status="completed")), "completed"),
        (_event(type="response.incomplete", response=_event(status="incomplete")), "incomplete"),
        (_event(type="response.output_text.delta", delta="x"), None),
        (_event(object="response", status="completed"), "completed"),
        (_event(type="message_stop", message=_event(stop_reason="max_tokens")), "max_tokens"),
        (_event(type="message", stop_reason="tool_use"), "tool_use"),
        (_event(candidates=[_event(finish_reason=Finish.STOP)]), "STOP"),
        (_event(candidates=None), None),
        (_event(done_reason="stop"), "stop"),
        (_event(text="x"), None),
    ],
)
def test_the_reason_is_read_from_each_providers_own_event(event: Any, reason: str | None) -> None:
    assert stop_reason(event) == reason


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "MAX_TOKENS", "incomplete", "content_filter", "SAFETY", "refusal", "", None, 3]
)
def test_every_reason_that_is_not_known_to_be_an_end_is_none(reason: object) -> None:
    assert not is_whole(reason)
