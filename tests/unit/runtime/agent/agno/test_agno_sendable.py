"""What of a history is sent differently from how it is stored."""

import json
from typing import Any

import pytest
from agno.models.message import Message

from agentic.runtime.agent.agno.sendable import sendable


def answer(name: str = "notes_save", arguments: str | None = '{ "text": "caf\\u00e9" }', **more: Any) -> Message:
    function = {"name": name, "arguments": arguments}
    return Message(role="assistant", tool_calls=[{"id": "call_1", "type": "function", "function": function}], **more)


@pytest.mark.parametrize(
    "message", [answer(), Message(role="user", content="Hi."), Message(role="tool", tool_call_id="a", content="x")]
)
def test_what_providers_take_is_sent_as_it_is(message: Message) -> None:
    assert sendable(message) is message


@pytest.mark.parametrize("name", ["notes.save", "", "naïve", "x" * 65, "functions.a<|b|>"])
def test_a_name_that_no_provider_takes_is_sent_as_another_one_in_the_answer_its_blocks_and_its_result(
    name: str,
) -> None:
    blocks = [{"type": "text", "text": "I save."}, {"type": "tool_use", "id": "call_1", "name": name, "input": {}}]
    stored = answer(name, provider_data={"content_blocks": blocks})
    before = stored.to_dict()
    sent = sendable(stored)
    assert sent.tool_calls is not None
    [taken] = {sent.tool_calls[0]["function"]["name"], (sent.provider_data or {})["content_blocks"][1]["name"]}
    assert taken.startswith("unknown_")
    assert taken.isascii()
    assert len(taken) <= 64
    assert sent.id == stored.id
    assert stored.to_dict() == before
    if name:
        result = Message(role="tool", tool_call_id="call_1", tool_name=name, content="no such tool")
        assert sendable(result).tool_name == taken


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"text": "mil', {"unreadable": '{"text": "mil'}),
        ('{"a": 1}{"b": 2}', {"unreadable": '{"a": 1}{"b": 2}'}),
        ('["a"]', {"unreadable": '["a"]'}),
        ("[" * 100_000, {"unreadable": "[" * 100_000}),
        ("", {}),
        (" \n", {}),
        (None, {}),
    ],
)
def test_arguments_that_are_no_object_are_sent_as_one_that_shows_what_the_model_wrote(
    arguments: str | None, sent: dict[str, str]
) -> None:
    stored = answer(arguments=arguments)
    copy = sendable(stored)
    assert copy.tool_calls is not None
    assert json.loads(copy.tool_calls[0]["function"]["arguments"]) == sent
    assert stored.tool_calls is not None
    assert stored.tool_calls[0]["function"]["arguments"] == arguments
