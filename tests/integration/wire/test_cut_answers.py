"""An answer that is not whole never becomes an action, however sound its calls look."""

import json
from typing import Any

import pytest

from agentic.local.providers.model import Answer, ModelCall, Wire
from agentic.local.providers.model.chat import events
from core_world import World, rows
from wire_stage import FORMATS, call, calls, results_of, wired

DONE = Answer(text="Done.")
WHOLE = (call("notes.save", "milk", id="call_1"), call("mail.send", "hello", id="call_2"))
CUT = (ModelCall(name="notes_save", arguments='{"text": "mil', id="call_1"),)


@pytest.mark.parametrize("model", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("asked", [WHOLE, CUT], ids=["whole arguments", "cut arguments"])
@pytest.mark.parametrize("finish", ["length", "content_filter", None])
@pytest.mark.guarantee("J8")
async def test_calls_of_an_answer_that_ended_early_are_answered_and_none_of_them_runs_or_asks_a_person(
    database: str, model: Any, asked: tuple[ModelCall, ...], finish: str | None
) -> None:
    world = World()
    first = Answer(calls=asked, finish=finish)
    async with wired(database, first, DONE, tools=[world.write(), world.send()], model=model) as (h, provider):
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer, list(settled.pending)) == ("succeeded", "Done.", [])
        assert world.effects == []
        assert (await h.tree(run_id)).approvals == []
        assert await rows(h, "select * from agent.idempotency_keys") == []
        assert results_of(provider.script.requests[1]) == [one.id for one in asked]
        sent = [
            one["function"]["arguments"]
            for m in provider.script.requests[1].messages
            for one in m.get("tool_calls", [])
        ]
        sent += [m["arguments"] for m in provider.script.requests[1].messages if m.get("type") == "function_call"]
        assert len(sent) == len(asked)
        assert all(isinstance(json.loads(arguments), dict) for arguments in sent), "some servers parse them again"
        assert {span["status"] for span in await h.calls(run_id)} <= {"error", "denied"}


@pytest.mark.parametrize("tool", ["notes.save", "mail.send"])
@pytest.mark.parametrize("at_the_end", [0, 1, 2], ids=["before the end", "before its reason", "in the arguments"])
@pytest.mark.guarantee("J8")
async def test_a_stream_cut_after_a_call_s_last_character_is_a_failure_of_the_provider_and_leaves_no_proposal(
    database: str, tool: str, at_the_end: int
) -> None:
    world = World()
    lost = calls(call(tool, "lost words"))
    reason_at = len(events(lost)) - 3  # then come the usage and the end mark
    lost = calls(call(tool, "lost words"), wire=Wire(cut_after=reason_at + 1 - at_the_end))
    answer = calls(call("notes.save", "kept words"))
    async with wired(database, lost, answer, DONE, tools=[world.write(), world.send()]) as (h, provider):
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert [role for role, _ in await h.messages(run_id)] == ["user"]
        assert (await h.tree(run_id)).approvals == []
        assert (await h.settle(run_id)).answer == "Done."
        assert world.effects == [("notes.save", "kept words")]
        assert provider.script.requests[0].raw == provider.script.requests[1].raw


@pytest.mark.parametrize("finish", ["length", "content_filter", None])
@pytest.mark.guarantee("W4")
async def test_a_last_word_that_was_cut_ends_the_run_as_partial_and_says_so(database: str, finish: str | None) -> None:
    async with wired(database, Answer(text="The answer is", finish=finish), tools=[]) as (h, _):
        settled = await h.settle(await h.start())
        assert (settled.state, settled.answer) == ("succeeded", "The answer is")
        assert settled.partial_reason == "answer_cut_off"
