"""A model that repeats itself, through the real invoker, runtime and Postgres: told to answer, then stopped (ADR 0028)."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import breaker_world
from agentic.runtime.agent.agno.answer_only import DIRECTIVE
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.testing import KILLED, Call, Calls, Harness, Say, SeenMessage, advance_in_child, harness
from agentic.testing.harness import SHORT
from core_world import Done, World, rows

READ: Turn = Calls([Call("crm.search", {"text": "Ada"})])
MAIL: Turn = Calls([Call("mail.send", {"text": "hello"})])


class Asked:
    """The last turn of a script: keeps the history it is asked with, and answers."""

    def __init__(self) -> None:
        self.last: SeenMessage | None = None

    def __call__(self, seen: Sequence[SeenMessage]) -> Say:
        self.last = seen[-1]
        return Say("From what I have.")


async def segments(h: Harness, run_id: UUID) -> list[tuple[str | None, str | None]]:
    """Code and words of each segment of the tree."""
    tree = await h.tree(run_id)
    return [(s["code"], s["attributes"].get("said")) for s in tree.spans if s["kind"] == "segment"]


async def counted(h: Harness, run_id: UUID) -> dict[str, Any]:
    """The run's breakers as its row holds them."""
    [row] = await rows(h, "select breakers from agent.runs where id = %(run_id)s", run_id=run_id)
    return dict(row["breakers"])


async def test_after_four_identical_reads_the_model_is_told_to_answer_and_the_log_does_not_hold_that(
    database: str,
) -> None:
    world, asked = World(), Asked()
    async with harness(tools=[world.read()], script=[READ] * 4 + [asked], database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", "From what I have.", None)
        assert len(world.effects) == 4
        assert asked.last is not None
        assert (asked.last.role, asked.last.text) == ("user", DIRECTIVE)
        messages = await h.messages(run_id)
        assert [role for role, _ in messages] == ["user", *["assistant", "tool"] * 4, "assistant"]
        assert all(DIRECTIVE not in text for _, text in messages)
        told = [s["attributes"].get("answer_only", False) for s in (await h.tree(run_id)).spans if s["kind"] == "llm"]
        assert told == [False] * 4 + [True]


async def test_three_identical_reads_and_others_leave_the_model_free(database: str) -> None:
    world, asked = World(), Asked()
    other: list[Turn] = [Calls([Call("crm.search", {"text": text})]) for text in "abc"]
    async with harness(tools=[world.read()], script=[READ] * 3 + other + [asked], database_url=database) as h:
        assert (await h.settle(await h.start())).state == "succeeded"
        assert asked.last is not None
        assert asked.last.role == "tool"


@pytest.mark.parametrize("again", ["crm.search", "crm.find", "mail.send", "nobody.knows"])
async def test_a_call_in_place_of_the_answer_ends_the_run_before_it_is_dispatched(database: str, again: str) -> None:
    world = World()
    script: list[Turn] = [*[READ] * 4, Calls([Call(again, {"text": "Ada"})]), Say("never")]
    tools = [world.read(), world.read("crm.find"), world.send()]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code, settled.pending) == ("failed", "tool_loop_detected", [])
        assert world.of("crm.search") == ["Ada"] * 4
        assert len(world.effects) == 4
        [(code, said)] = await segments(h, run_id)
        assert code == "tool_loop_detected"
        assert said is not None
        assert "told to answer" in said
        assert (await h.messages(run_id))[-1][0] == "assistant"  # what it proposed is kept


@pytest.mark.parametrize("tool", ["crm.search", "notes.save"], ids=["inline", "paused"])
async def test_a_batch_that_reaches_the_limit_by_itself_runs_none_of_its_calls(database: str, tool: str) -> None:
    world = World()
    texts = ['{"text": "Ada"}', '{ "text":"Ada" }', '{"text":"\\u0041da"}', '{"text":"Ada"}\n', '{"text":"Ada"}']
    script: list[Turn] = [
        Calls([Call("crm.find", {"text": "first"}), *[Call(tool, text) for text in texts]]),
        Say("never"),
    ]
    tools = [world.read(), world.read("crm.find"), world.write()]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "tool_loop_detected")
        assert world.of(tool) == []
        assert await h.calls(run_id, tool) == []
        [(code, said)] = await segments(h, run_id)
        assert code == "tool_loop_detected"
        assert said is not None
        assert "5 times" in said


async def test_a_call_to_no_tool_is_counted_like_every_other(database: str) -> None:
    world = World()
    script = [Calls([Call("nobody.knows", "{}")])] * 5
    async with harness(tools=[world.read()], script=script, database_url=database) as h:
        settled = await h.settle(await h.start())
        assert (settled.state, settled.error_code) == ("failed", "tool_loop_detected")


async def test_the_third_identical_rejected_send_ends_the_run(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL] * 3 + [Say("never")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id, "rejected")
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code, settled.pending) == ("failed", "tool_policy_denied", [])
        assert world.effects == []
        assert [span["code"] for span in await h.calls(run_id)][-3:] == ["rejected"] * 3
        code, said = (await segments(h, run_id))[-1]
        assert code == "tool_policy_denied"
        assert said is not None
        assert "mail.send" in said
        assert [role for role, _ in await h.messages(run_id)] == ["user", *["assistant", "tool"] * 3]


@pytest.mark.parametrize("tool", ["crm.search", "notes.save"], ids=["inline", "paused"])
async def test_two_denials_of_a_call_are_answered_and_the_third_ends_the_run(database: str, tool: str) -> None:
    world = World()
    turn = Calls([Call(tool, {"text": "Ada"})])
    tools = [world.read(), world.write()]
    for times, ends in ((2, ("succeeded", None)), (3, ("failed", "tool_policy_denied"))):
        async with harness(tools=tools, script=[turn] * times + [Say("Given up.")], database_url=database) as h:
            run_id = await h.start()
            await h.platform.catalogue.set_grant(h.organization_id, "tested", tool, active=False)
            settled = await h.settle(run_id)
            assert (settled.state, settled.error_code) == ends
            assert [span["code"] for span in await h.calls(run_id)] == ["denied"] * times
            assert [role for role, _ in await h.messages(run_id)].count("tool") == times
    assert world.effects == []


async def test_denials_of_different_calls_are_not_added_up(database: str) -> None:
    world = World()
    turns = [Calls([Call("notes.save", {"text": text})]) for text in "abcabc"]
    async with harness(tools=[world.write()], script=[*turns, Say("Given up.")], database_url=database) as h:
        run_id = await h.start()
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "notes.save", active=False)
        assert (await h.settle(run_id)).state == "succeeded"


def observing(world: World, name: str = "crm.search", *, fails: bool = False) -> Any:
    """A read that sees something new at every look."""

    async def look(ctx: CallContext, args: Any) -> Done:
        ctx.observed({"text": args.text, "look": len(world.effects)})
        if fails:
            raise LookupError("declared")
        return Done(id="the same")

    declared = {"refusals": {LookupError: "not_found"}} if fails else {}
    return world.read(name, look, **declared)


async def test_what_changes_at_every_look_can_be_looked_at_thirty_six_times(database: str) -> None:
    world, asked = World(), Asked()
    async with harness(tools=[observing(world)], script=[READ] * 36 + [asked], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 36
        assert asked.last is not None
        assert asked.last.text == DIRECTIVE
        stored = str([await h.messages(run_id), (await h.tree(run_id)).spans])
        [(_, _, evidence)] = (await counted(h, run_id))["counts"].values()
        assert world.contexts[-1].evidence == evidence
        assert all(ctx.evidence is not None and ctx.evidence not in stored for ctx in world.contexts)


async def test_the_thirty_seventh_look_ends_the_run(database: str) -> None:
    world = World()
    async with harness(tools=[observing(world)], script=[READ] * 37, database_url=database) as h:
        settled = await h.settle(await h.start())
        assert (settled.state, settled.error_code) == ("failed", "tool_loop_detected")
        assert len(world.effects) == 36


async def test_what_a_failed_call_says_it_saw_does_not_count(database: str) -> None:
    world = World()
    async with harness(tools=[observing(world, fails=True)], script=[READ] * 5, database_url=database) as h:
        settled = await h.settle(await h.start())
        assert (settled.state, settled.error_code) == ("failed", "tool_loop_detected")
        assert len(world.effects) == 4


async def test_what_an_effect_saw_is_known_to_the_run_and_its_replays_see_nothing_new(database: str) -> None:
    async def save(ctx: CallContext, args: Any) -> Done:
        ctx.observed(args.text)
        return Done(id="1")

    world = World()
    script = [Calls([Call("notes.save", {"text": "milk"})])] * 2 + [Say("Saved.")]
    async with harness(tools=[world.write(does=save)], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        [(calls, denials, evidence)] = (await counted(h, run_id))["counts"].values()
        assert (calls, denials, evidence) == (2, 0, world.contexts[0].evidence)
        assert len(world.effects) == 1


@pytest.mark.parametrize("requests", [1, 2])
async def test_the_counts_outlive_the_segment_and_the_wait_for_a_person(database: str, requests: int) -> None:
    world, asked = World(), Asked()
    both = Calls([Call("crm.search", {"text": "Ada"}), Call("mail.send", {"text": "hello"})])
    script: list[Turn] = [READ, both, READ, READ, asked]
    async with harness(tools=[world.read(), world.send()], script=script, database_url=database) as h:
        run_id = await h.start(agent=h.agent.model_copy(update={"max_requests_per_segment": requests}))
        assert (await h.settle(run_id)).state == "parked"
        assert sorted(count[0] for count in (await counted(h, run_id))["counts"].values()) == [1, 2]
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("crm.search") == ["Ada"] * 4
        assert world.of("mail.send") == ["hello"]
        assert asked.last is not None
        assert asked.last.text == DIRECTIVE


async def test_a_loop_is_seen_across_segments(database: str) -> None:
    world = World()
    async with harness(tools=[world.read()], script=[READ] * 5, database_url=database) as h:
        run_id = await h.start(agent=h.agent.model_copy(update={"max_requests_per_segment": 1}))
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "tool_loop_detected")
        assert len(world.effects) == 4
        assert len(await segments(h, run_id)) == 5


async def test_a_read_that_met_a_fault_and_runs_again_counts_once(database: str) -> None:
    async def look(ctx: CallContext, args: Any) -> Done:
        if len(world.effects) in (2, 4):
            raise RuntimeError("a defect")
        return Done(id="x")

    world, asked = World(), Asked()
    async with harness(tools=[world.read(does=look)], script=[READ] * 4 + [asked], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 6
        assert asked.last is not None
        assert asked.last.text == DIRECTIVE


async def test_a_denial_beside_a_read_that_met_a_fault_counts_once(database: str) -> None:
    async def look(ctx: CallContext, args: Any) -> Done:
        if len(world.effects) == 1:
            raise RuntimeError("a defect")
        return Done(id="x")

    world = World()
    turn = Calls([Call("crm.find", {"text": "Ada"}), Call("crm.search", {"text": "Ada"})])
    script: list[Turn] = [turn, Calls([Call("crm.find", {"text": "Ada"})]), Say("Given up.")]
    tools = [world.read("crm.find"), world.read(does=look)]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "crm.find", active=False)
        assert (await h.settle(run_id)).state == "succeeded"
        assert [span["code"] for span in await h.calls(run_id, "crm.find")] == ["denied"] * 3  # one of them asked again


async def test_a_worker_that_dies_in_a_call_changes_no_count(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(breaker_world.LEDGER, str(tmp_path / "looks"))
    model = ScriptedModel(script=breaker_world.SCRIPT)
    async with harness(tools=[breaker_world.look], script=lambda: model, database_url=database) as h:
        run_id = await h.start()
        plugins = str(Path(breaker_world.__file__).parent)
        environment = {
            breaker_world.DIE_AT: "2",
            "PYTHONPATH": os.pathsep.join([plugins, os.environ.get("PYTHONPATH", "")]),
        }
        ended = await asyncio.to_thread(
            advance_in_child,
            "breaker_world:app",
            database,
            h.organization_id,
            run_id,
            environment=environment,
            lease_s=SHORT.lease_s,
        )
        assert ended == KILLED
        [(calls, _)] = (await counted(h, run_id))["counts"].values()
        assert calls == 2
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer) == ("succeeded", "It never changed.")
        assert [asked[-1].text == DIRECTIVE for asked in model.asked] == [False, False, True]
