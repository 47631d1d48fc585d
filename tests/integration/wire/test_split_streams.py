"""However a stream is cut into packets and events, the run reads the same message and does the same thing (J8)."""

import json
from typing import Any

import pytest

from agentic.local.providers.model import Answer, ModelCall, Wire
from agentic.testing import Harness
from core_world import World, rows
from wire_stage import FORMATS, call, calls, results, results_of, wired

TEXT = 'Grüße an Zoë 👩‍💻 — "quoted", \\ back\nnew'
WHOLE = Wire(piece_chars=10_000)
WIRES = {
    "by the piece": Wire(piece_chars=3),
    "by the character": Wire(piece_chars=1),
    "inside characters": Wire(piece_chars=5, packet_bytes=1),
    "odd packets": Wire(piece_chars=4, packet_bytes=7),
    "interleaved": Wire(piece_chars=2, interleaved=True),
    "interleaved inside characters": Wire(piece_chars=1, packet_bytes=3, interleaved=True),
}


async def stored(h: Harness) -> list[dict[str, Any]]:
    """The stored messages without what differs from run to run: ids, times."""
    listed = await rows(h, "select body from agent.run_messages order by run_id, seq")
    bodies = [json.loads(bytes(row["body"])) for row in listed]
    return [{name: body.get(name) for name in ("role", "content", "tool_calls", "tool_call_id")} for body in bodies]


@pytest.mark.parametrize("model", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.guarantee("J8")
async def test_a_split_stream_is_the_message_that_a_whole_one_is_and_calls_run_in_the_model_s_order(
    database: str, model: Any, wire: Wire
) -> None:
    world = World()
    asked = (call("notes.save", TEXT, id="call_a"), call("notes.save", "second", id="call_b"))
    replies = [
        reply for way in (WHOLE, wire) for reply in (calls(*asked, wire=way), Answer(text=TEXT + TEXT, wire=way))
    ]
    async with wired(database, *replies, tools=[world.write()], model=model) as (h, provider):
        for _ in range(2):
            settled = await h.settle(await h.start())
            assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", TEXT + TEXT, None)
        assert world.of("notes.save") == [TEXT, "second"] * 2
        first, second = provider.script.requests[1], provider.script.requests[3]
        assert results_of(first) == results_of(second) == ["call_a", "call_b"]
        messages = await stored(h)
        assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "assistant"] * 2
        halves = [
            [
                m
                if m["role"] != "tool"
                else {**m, "content": json.loads(m["content"])["ok"]}  # the ids it names differ
                for m in half
            ]
            for half in (messages[:5], messages[5:])
        ]
        assert halves[0] == halves[1]


@pytest.mark.parametrize(
    "asked",
    [
        [call("notes.save", "a", id=None), call("notes.save", "b", id=None)],
        [call("notes.save", "a", id="same"), call("notes.save", "b", id="same")],
        [call("notes.save", "a", id=""), call("notes.save", "b", id="call_b")],
        [
            ModelCall(name="notes_save", arguments='{"text": "a"}', id="1", type=None),
            ModelCall(name="notes_save", arguments='{"text": "b"}', id="2", type=None),
        ],
        [
            ModelCall(name="notes_save", arguments='{"text": "a"}', id="1", index=1),
            ModelCall(name="notes_save", arguments='{"text": "b"}', id="2", index=2),
        ],
    ],
    ids=["no ids", "one id twice", "an empty id", "no type", "numbered from one"],
)
async def test_calls_of_a_careless_server_run_once_each_and_every_result_has_its_own_id(
    database: str, asked: list[ModelCall]
) -> None:
    world = World()
    async with wired(database, calls(*asked), Answer(text="Done."), tools=[world.write()]) as (h, provider):
        assert (await h.settle(await h.start())).answer == "Done."
        assert world.of("notes.save") == ["a", "b"]
        again = provider.script.requests[1]
        replayed = next(m for m in again.messages if m["role"] == "assistant")["tool_calls"]
        assert [one["type"] for one in replayed] == ["function", "function"]
        assert len({one["id"] for one in replayed}) == 2
        assert [one["id"] for one in replayed] == [call_id for call_id, _ in results(again)]
        assert all(one["id"] for one in replayed)


async def test_two_calls_under_one_number_are_one_unsound_call_and_nothing_runs(database: str) -> None:
    world = World()
    asked = [
        ModelCall(name="notes_save", arguments='{"text": "a"}', id="1", index=0),
        ModelCall(name="notes_save", arguments='{"text": "b"}', id="2", index=0),
    ]
    async with wired(database, calls(*asked), Answer(text="Sorry."), tools=[world.write()]) as (h, provider):
        assert (await h.settle(await h.start())).answer == "Sorry."
        assert world.effects == []
        [(_, told)] = results(provider.script.requests[1])
        assert '"reason_code":"invalid_input"' in told


@pytest.mark.parametrize(
    "name", ["drop_table", "Notes_Save", "notes.save", "", "functions.notes_save<|channel|>", "naïve name", "n" * 90]
)
async def test_a_name_that_no_tool_has_is_answered_and_the_next_request_is_one_a_provider_takes(
    database: str, name: str
) -> None:
    world = World()
    asked = [ModelCall(name=name, arguments='{"text": "a"}', id="call_1"), call("notes.save", "b", id="call_2")]
    async with wired(database, calls(*asked), Answer(text="Done."), tools=[world.write()]) as (h, provider):
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "Done."
        assert world.of("notes.save") == ["b"]
        again = provider.script.requests[1]
        told = dict(results(again))
        assert '"reason_code":"unknown_tool"' in told["call_1"]
        sent = [one["function"]["name"] for m in again.messages for one in m.get("tool_calls", [])]
        assert all(part.isascii() and 0 < len(part) <= 64 for part in sent)
        assert all(character.isalnum() or character in "_-" for part in sent for character in part)
        assert "notes_save" not in sent[:1]
        body = (await stored(h))[1]
        assert body["tool_calls"][0]["function"]["name"] == name


@pytest.mark.parametrize("usage_so_far", [False, True], ids=["in the last event", "in every event"])
@pytest.mark.guarantee("M1")
async def test_usage_is_recorded_once_an_attempt_however_often_it_is_reported(
    database: str, usage_so_far: bool
) -> None:
    wire = Wire(piece_chars=2, usage_so_far=usage_so_far)
    async with wired(database, Answer(text="A long answer.", wire=wire), tools=[]) as (h, _):
        await h.settle(await h.start())
        [row] = await rows(h, "select * from agent.ai_usage_log where kind = 'model'")
        assert (row["input_tokens"], row["output_tokens"]) == (100, 20)
        assert (row["cached_tokens"], row["reasoning_tokens"], row["ok"]) == (64, 7, True)
