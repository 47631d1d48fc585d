"""What another process sends after a resume is what was stored, and what was approved is what runs (A2, J8)."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from agentic.local.providers.model import Answer, ModelCall, Request
from core_world import World, rows
from wire_stage import answers, call, calls, results, wired

DONE = Answer(text="Done.")
RAW = '{ "text":"caf\\u00e9  ü",\n "text2": null }'.replace(',\n "text2": null', "")
"""Spacing and escapes that a re-encoding would not keep."""


@pytest.mark.guarantee("A2", "J8")
async def test_the_next_process_sends_the_stored_messages_to_the_character_and_asks_for_nothing_twice(
    database: str,
) -> None:
    world = World()
    tools = [world.read(), world.send()]
    asked = Answer(
        text="I look, then write.\n",
        calls=(call("crm.search", "per", id="call_r"), ModelCall(name="mail_send", arguments=RAW, id="call_w")),
    )
    async with wired(database, asked, tools=tools) as (first, before):
        run_id = await first.start("Write to Zoë.")
        assert (await first.settle(run_id)).state == "parked"
        await first.decide(run_id)
        [opening] = before.script.requests
    async with wired(database, DONE, tools=tools) as (made, after):
        second = replace(made, organization_id=first.organization_id, user_id=first.user_id)
        assert (await second.settle(run_id)).answer == "Done."
        [request] = after.script.requests
        assert world.of("mail.send") == ["café  ü"]
        assert world.of("crm.search") == ["per"]
        stored = [
            json.loads(bytes(row["body"]))
            for row in await rows(second, "select body from agent.run_messages order by seq")
        ]
        [answer] = answers(request)
        assert answer["content"] == stored[1]["content"] == "I look, then write.\n"
        assert [one["function"]["arguments"] for one in answer["tool_calls"]] == ['{"text": "per"}', RAW]
        assert answer["tool_calls"] == stored[1]["tool_calls"]
        assert results(request) == [(m["tool_call_id"], m["content"]) for m in stored if m["role"] == "tool"]
        assert request.messages[: len(opening.messages)] == opening.messages
        assert request.raw.startswith(opening.raw[: opening.raw.index(b'"messages":')])
        assert {k: v for k, v in request.body.items() if k != "messages"} == {
            k: v for k, v in opening.body.items() if k != "messages"
        }


@pytest.mark.guarantee("A2")
async def test_a_rejection_reaches_the_model_once_and_a_call_that_words_it_anew_asks_anew(database: str) -> None:
    world = World()
    replies = [calls(call("mail.send", "hello")), calls(call("mail.send", "hello there", id="call_2")), DONE]
    async with wired(database, *replies, tools=[world.send()]) as (h, provider):
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id, "rejected", comment="Not today.")
        parked = await h.settle(run_id)
        assert parked.state == "parked"
        assert len(parked.pending) == 1
        assert world.effects == []
        [(call_id, told)] = results(provider.script.requests[1])
        assert call_id == "call_1"
        assert "Not today." in told
        await h.decide(run_id, "rejected")
        assert (await h.settle(run_id)).answer == "Done."
        assert world.effects == []


async def test_each_request_of_a_long_run_begins_with_the_one_before_it(database: str) -> None:
    """A provider's prompt cache, and a reader, meet the same history again and again."""
    world = World()
    turns = [calls(call("crm.search", f"look {n}", id=f"call_{n}")) for n in range(5)]
    async with wired(database, *turns, DONE, tools=[world.read()]) as (h, provider):
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "Done."

        def encoded(request: Request) -> list[str]:
            return [json.dumps(message) for message in request.messages]

        requests: list[Any] = [encoded(request) for request in provider.script.requests]
        for earlier, later in itertools.pairwise(requests):
            assert later[: len(earlier)] == earlier
            assert len(later) == len(earlier) + 2
