"""Failures that people who run agents meet with the framework, each under its number, over a real wire."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from agentic.local.providers.model import Answer, ModelCall, Request
from agentic.services.approvals.models import Verdict
from core_world import World, journal
from wire_stage import call, calls, results, wired

DONE = Answer(text="Done.")


@pytest.mark.guarantee("A2", "J8")
async def test_case_1_a_batch_of_gated_plain_and_free_calls_loses_no_result_and_none_jumps_the_gate(
    database: str,
) -> None:
    world = World()
    tools = [world.send(), world.read(), world.write()]
    batch = calls(
        call("mail.send", "refund 7", id="call_gated"),
        call("crm.search", "Oslo", id="call_plain"),
        call("notes.save", "sent", id="call_free"),
    )
    async with wired(database, batch, tools=tools) as (first, before):
        run_id = await first.start()
        assert (await first.settle(run_id)).state == "parked"
        assert world.effects == [], "what comes behind a call that waits for a person waits with it"
        await first.decide(run_id)
        assert before.script.left == 0
    async with wired(database, DONE, tools=tools) as (made, after):
        second = replace(made, organization_id=first.organization_id, user_id=first.user_id)
        assert (await second.settle(run_id)).answer == "Done."
        [request] = after.script.requests
        assert [call_id for call_id, _ in results(request)] == ["call_gated", "call_plain", "call_free"]
        assert world.effects == [("mail.send", "refund 7"), ("crm.search", "Oslo"), ("notes.save", "sent")]


@pytest.mark.guarantee("A2", "A3")
async def test_case_19_of_three_gated_calls_each_decision_settles_its_own_and_finished_siblings_do_not_run_again(
    database: str,
) -> None:
    world = World()
    batch = calls(*(call("mail.send", name, id=f"call_{name}") for name in ("A", "B", "C")))
    by_words: dict[str, Any] = {}
    async with wired(database, batch, DONE, tools=[world.send()]) as (h, provider):
        run_id = await h.start()
        for pending in (await h.settle(run_id)).pending:
            by_words[json.loads(pending.arguments_text)["text"]] = pending.id
        for words, verdict in (("B", Verdict.APPROVED), ("A", Verdict.REJECTED), ("C", Verdict.APPROVED)):
            await h.platform.approvals.decide(h.organization_id, by_words[words], user_id=h.user_id, verdict=verdict)
            settled = await h.settle(run_id)
        assert settled.answer == "Done."
        assert sorted(world.of("mail.send")) == ["B", "C"]
        told = results(provider.script.requests[1])
        assert [call_id for call_id, _ in told] == ["call_A", "call_B", "call_C"]
        assert '"ok":true' not in told[0][1]
        assert '"ok":true' in told[1][1]
        assert '"ok":true' in told[2][1]
        assert len(provider.script.requests) == 2


async def test_case_26_the_same_call_id_in_two_runs_and_one_call_twice_in_a_message_are_told_apart(
    database: str,
) -> None:
    world = World()
    replies = [
        calls(call("notes.save", "order 1", id="call_0")),
        DONE,
        calls(call("notes.save", "order 2", id="call_0")),
        DONE,
    ]
    async with wired(database, *replies, tools=[world.write()]) as (h, provider):
        first, second = await h.start("First."), await h.start("Second.")
        for run_id in (first, second):
            assert (await h.settle(run_id)).answer == "Done."
        assert world.of("notes.save") == ["order 1", "order 2"]
        told = [results(provider.script.requests[place]) for place in (1, 3)]
        assert [call_id for [(call_id, _)] in told] == ["call_0", "call_0"]
        assert told[0] != told[1]
        assert len(await journal(h, first)) == len(await journal(h, second)) == 1


@pytest.mark.guarantee("J1")
async def test_case_26_two_identical_calls_of_a_message_are_one_effect_and_each_has_its_result(database: str) -> None:
    """A deliberate repeat cannot be told from a replay, so a tool that means one takes an argument that tells them apart."""
    world = World()
    batch = calls(call("notes.save", "point", id="call_x"), call("notes.save", "point", id="call_y"))
    async with wired(database, batch, DONE, tools=[world.write()]) as (h, provider):
        assert (await h.settle(await h.start())).answer == "Done."
        assert world.of("notes.save") == ["point"]
        told = results(provider.script.requests[1])
        assert [call_id for call_id, _ in told] == ["call_x", "call_y"]
        assert all('"ok":true' in text for _, text in told)


@pytest.mark.parametrize("value", ["true", "Null", " FALSE ", "None", "42"])
async def test_case_34_a_string_the_framework_takes_for_a_constant_reaches_policy_person_and_handler_as_written(
    database: str, value: str
) -> None:
    world = World()
    batch = calls(call("crm.search", value, id="call_r"), call("mail.send", value, id="call_w"))
    async with wired(database, batch, DONE, tools=[world.read(), world.send()]) as (h, _):
        run_id = await h.start()
        [pending] = (await h.settle(run_id)).pending
        assert json.loads(pending.arguments_text) == {"text": value}
        await h.decide(run_id)
        assert (await h.settle(run_id)).answer == "Done."
        assert world.effects == [("crm.search", value), ("mail.send", value)]


async def test_case_34_what_is_no_json_is_refused_by_our_rule_and_never_evaluated(database: str) -> None:
    world = World()
    texts = ["{'text': 'a'}", '{"text": ("a")}', '{"text": "a",}', "dict(text='a')"]
    batch = calls(*(ModelCall(name="notes_save", arguments=text, id=f"call_{n}") for n, text in enumerate(texts)))
    async with wired(database, batch, DONE, tools=[world.write()]) as (h, provider):
        assert (await h.settle(await h.start())).answer == "Done."
        assert world.effects == []
        assert len(results(provider.script.requests[1])) == len(texts)


@pytest.mark.guarantee("A3", "J1")
async def test_case_49_two_runs_of_a_person_paused_at_once_go_on_in_parallel_and_each_keeps_its_own_history(
    database: str,
) -> None:
    world = World()

    def reply(request: Request) -> Answer:
        asked = str(request.messages[-1]["content"])
        words = next(m["content"] for m in request.messages if m["role"] == "user")
        return DONE if request.messages[-1]["role"] == "tool" else calls(call("mail.send", f"for {words}: {asked}"))

    async with wired(database, *[reply] * 4, tools=[world.send()]) as (h, provider):
        runs = [await h.start(text) for text in ("One.", "Two.")]
        for run_id in runs:
            assert (await h.settle(run_id)).state == "parked"
        await asyncio.gather(*(h.decide(run_id) for run_id in runs))
        settled = await asyncio.gather(*(h.settle(run_id) for run_id in runs))
        assert [one.answer for one in settled] == ["Done.", "Done."]
        assert sorted(world.of("mail.send")) == ["for One.: One.", "for Two.: Two."]
        for words in ("One.", "Two."):
            mine = [r for r in provider.script.requests if words in [m.get("content") for m in r.messages]]
            assert [[m["role"] for m in request.messages[1:]] for request in mine] == [
                ["user"],
                ["user", "assistant", "tool"],
            ]
