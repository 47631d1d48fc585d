"""The scripted model goes on where its history stands, and words things anew when told to."""

import json

import pytest
from agno.exceptions import ModelProviderError
from agno.models.message import Message
from agno.models.response import ModelResponse

from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Call, Calls, Fail, Say, SeenMessage

START = [Message(role="system", content="s"), Message(role="user", content="hi")]
SEND = Calls([Call("email.send", {"to": "ada@example.test", "body": "Dear Ada"}, reword=("body",))])


async def _ask(model: ScriptedModel, history: list[Message]) -> ModelResponse:
    return await model.ainvoke(messages=history)


async def test_its_position_is_the_number_of_answers_in_the_history() -> None:
    script = [Say("one"), Say("two")]
    assert (await _ask(ScriptedModel(script=script), START)).content == "one"
    elsewhere = ScriptedModel(script=script)
    assert (await _ask(elsewhere, [*START, Message(role="assistant", content="one")])).content == "two"


async def test_without_rewording_the_same_question_has_the_same_answer() -> None:
    first, second = [await _ask(ScriptedModel(script=[SEND]), START) for _ in range(2)]
    assert first.tool_calls == second.tool_calls


async def test_rewording_renews_ids_and_the_named_arguments_alone() -> None:
    model = ScriptedModel(script=[SEND], reword=True)
    first, second = [(await _ask(model, START)).tool_calls[0] for _ in range(2)]
    assert first["id"] != second["id"]
    worded = [json.loads(call["function"]["arguments"]) for call in (first, second)]
    assert worded[0]["body"] != worded[1]["body"]
    assert all(words["body"].startswith("Dear Ada") for words in worded)
    assert {words["to"] for words in worded} == {"ada@example.test"}


async def test_a_turn_may_be_made_from_what_was_seen() -> None:
    def last(seen: object) -> Say:
        assert isinstance(seen, list)
        message: SeenMessage = seen[-1]
        return Say(f"you said {message.text}")

    assert (await _ask(ScriptedModel(script=[last]), START)).content == "you said hi"


async def test_a_request_past_the_end_says_so() -> None:
    with pytest.raises(ModelProviderError, match="has 1 turns and was asked for turn 2"):
        await _ask(ScriptedModel(script=[Say("one")]), [*START, Message(role="assistant", content="one")])


async def test_failures_are_counted_over_the_objects_own_requests() -> None:
    model = ScriptedModel(script=[Say("one")], failures={0: Fail(429)})
    with pytest.raises(ModelProviderError) as failed:
        await _ask(model, START)
    assert failed.value.status_code == 429
    assert (await _ask(model, START)).content == "one"
    assert len(model.asked) == 2
