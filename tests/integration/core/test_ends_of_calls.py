"""Handlers that fail, hang or lose their database, in each class: what is stored, what the model reads, what runs again."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from agentic.contract.errors import StorageUnavailable
from agentic.contract.results import ErrorCode
from agentic.runtime.agent.script import Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.ports import Decision, PolicyQuestion
from agentic.testing import Call, Calls, FakeClock, Harness, Say, harness
from core_world import Done, World, execute, journal

SAVE = Calls([Call("notes.save", {"text": "milk"})])


async def codes(h: Harness, run_id: UUID) -> list[str]:
    texts = [text for role, text in await h.messages(run_id) if role == "tool"]
    return [json.loads(text.split("\n")[0]).get("reason_code", "ok") for text in texts]


async def kinds(h: Harness, run_id: UUID) -> list[str]:
    return [effect["kind"] for effect in (await h.tree(run_id)).effects]


def fails(world: World, times: int) -> Any:
    """A handler whose line breaks that often, after the request has left."""

    async def does(ctx: CallContext, _args: Any) -> Any:
        await ctx.before_first_byte()
        if len(world.effects) <= times:
            raise ConnectionResetError("the line broke")
        return Done(id=str(len(world.effects)))

    return does


@pytest.mark.guarantee("J7", "J3")
async def test_a_conditional_call_is_repeated_in_place_with_the_same_key_and_bytes(database: str) -> None:
    world = World()
    tool = world.write(does=fails(world, 2), idempotency="conditional", vendor_key_ttl_s=3600)
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "succeeded"
        assert world.effects == [("notes.save", "milk")] * 3
        assert len(set(world.keys)) == 1
        assert await kinds(h, run_id) == ["completed"]
        [claim] = await journal(h, run_id)
        assert (claim["attempt"], claim["repeats"]) == (1, 2)


@pytest.mark.guarantee("J7", "J3")
async def test_a_conditional_call_that_stays_unknown_is_held_and_the_run_waits_for_it(database: str) -> None:
    world = World()
    tool = world.write(does=fails(world, 3), idempotency="conditional", vendor_key_ttl_s=3600, timeout_s=1)
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database, claim_grace_s=0.1) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert [role for role, _ in await h.messages(run_id)] == ["user", "assistant"]  # the model reads nothing yet
        assert (await h.settle(run_id)).partial_reason is None
        assert len(world.effects) == 4
        assert len(set(world.keys)) == 1
        assert await kinds(h, run_id) == ["held", "completed"]
        assert await codes(h, run_id) == ["ok"]


@pytest.mark.guarantee("J3")
async def test_a_refusal_after_an_unknown_attempt_does_not_count_as_nothing_happened(database: str) -> None:
    """The first request may have arrived; that the second one was refused says nothing about it."""
    world = World()

    class Taken(Exception):
        pass

    async def does(_ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) == 1:
            raise ConnectionResetError
        raise Taken("that note is there already")

    tool = world.write(
        does=does,
        idempotency="conditional",
        vendor_key_ttl_s=2,
        timeout_s=1,
        refusals={Taken: ErrorCode.CONFLICT},
    )
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database, claim_grace_s=0.1) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert settled.partial_reason == "outcome_unknown: notes.save"
        assert await codes(h, run_id) == ["outcome_unknown"]
        assert len(set(world.keys)) == 1


@pytest.mark.guarantee("J3", "J6")
async def test_a_call_that_must_not_repeat_and_runs_out_of_time_is_unknown_not_failed(database: str) -> None:
    world = World()

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        await asyncio.sleep(30)

    async with harness(
        tools=[world.write(does=hangs, timeout_s=0.2)], script=[SAVE, SAVE, Say("Done.")], database_url=database
    ) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "outcome_unknown: notes.save")
        assert len(world.effects) == 1
        assert await codes(h, run_id) == ["outcome_unknown", "outcome_unknown"]
        [call] = await h.uncertain(run_id)
        assert call.uncertain_reason == "no answer before the deadline"


@pytest.mark.guarantee("J3")
async def test_a_handler_that_ends_the_process_ends_its_own_call_and_nothing_else(database: str) -> None:
    world = World()

    async def exits(_ctx: CallContext, _args: Any) -> Any:
        raise SystemExit(3)

    async with harness(tools=[world.write(does=exits)], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "outcome_unknown: notes.save"
        [call] = await h.uncertain(run_id)
        assert call.uncertain_reason == "the handler failed after the effect may have left (RuntimeError)"


@pytest.mark.guarantee("J3", "J6")
async def test_a_call_whose_time_is_up_before_its_handler_begins_is_late_and_not_unknown(database: str) -> None:
    """Nothing outside saw it, so the claim is free and the same call may run."""
    world, clock = World(), FakeClock()

    class SlowOnce:
        asked = 0

        async def decide(self, question: PolicyQuestion) -> Decision:
            self.asked += 1
            if self.asked == 1:
                clock.advance(question.spec.timeout_s)
            return Decision(effect="allow", rule_id="test", rule_version=1, reason="slow")

    async with harness(
        tools=[world.write(timeout_s=5)],
        script=[SAVE, SAVE, Say("Done.")],
        database_url=database,
        policy=SlowOnce(),
        clock=clock,
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason is None
        assert await codes(h, run_id) == ["timeout", "ok"]
        assert len(world.effects) == 1
        assert await kinds(h, run_id) == ["released", "completed"]


@pytest.mark.guarantee("B2")
async def test_a_tool_that_raises_is_named_with_its_place_and_never_with_its_text(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()

    async def raises(_ctx: CallContext, _args: Any) -> Any:
        raise RuntimeError("GET https://api.test/v1?key=tok_live_0123456789")

    async with harness(tools=[world.write(does=raises)], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        [span] = await h.calls(run_id)
        assert (span["status"], span["attributes"]["raised"]) == ("unknown", "RuntimeError")
        assert "tok_live" not in str(await h.tree(run_id))
    assert "notes.save raised RuntimeError" in caplog.text
    assert "in raises" in caplog.text
    assert "tok_live" not in caplog.text


@pytest.mark.guarantee("J4")
async def test_an_effect_whose_answer_cannot_be_read_stands_in_the_tree_under_its_code(database: str) -> None:
    world = World()

    async def strange(_ctx: CallContext, _args: Any) -> Any:
        return {"nope": 1}

    async with harness(tools=[world.write(does=strange)], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        [span] = await h.calls(run_id)
        assert (span["status"], span["code"]) == ("ok", "invalid_output")


@pytest.mark.guarantee("J6")
async def test_an_idempotent_call_whose_end_is_unknown_is_released_and_run_again_with_the_run(database: str) -> None:
    world = World()
    tool = world.write(does=fails(world, 1), idempotency="idempotent")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert await journal(h, run_id) == []
        assert (await h.settle(run_id)).state == "succeeded"
        assert len(world.effects) == 2
        assert await kinds(h, run_id) == ["released", "completed"]


async def test_a_read_that_runs_out_of_time_is_answered_as_such(database: str) -> None:
    world = World()

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        await asyncio.sleep(30)

    tool = world.read(does=hangs, timeout_s=0.1)
    script: list[Turn] = [Calls([Call("crm.search", {"text": "a"}), Call("crm.search", {"text": "b"})]), Say("Done.")]
    async with harness(tools=[tool], script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        assert await codes(h, run_id) == ["timeout", "timeout"]


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("happened", [True, False])
async def test_a_probe_settles_an_unknown_end_in_the_same_segment(database: str, happened: bool) -> None:
    world = World()

    async def probe(_ctx: CallContext, _args: Any) -> Any:
        return Done(id="found") if happened else None

    tool = world.write(does=fails(world, 1), probe=probe)
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert len(world.effects) == (1 if happened else 2)
        assert await kinds(h, run_id) == (["completed"] if happened else ["released", "completed"])


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize("broken", [ValueError("x"), asyncio.CancelledError()], ids=repr)
async def test_a_probe_that_cannot_tell_leaves_the_question_to_a_person(database: str, broken: BaseException) -> None:
    world = World()

    async def probe(_ctx: CallContext, _args: Any) -> Any:
        raise broken

    tool = world.write(does=fails(world, 9), probe=probe)
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "outcome_unknown: notes.save"
        assert len(world.effects) == 1


@pytest.mark.guarantee("J1", "J3")
@pytest.mark.parametrize("landed", [True, False], ids=["commit landed", "commit lost"])
async def test_a_database_that_drops_the_line_at_the_answer_s_commit_costs_no_effect(
    database: str, landed: bool
) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[SAVE, Say("Done.")], database_url=database) as h:
        ledger: Any = h.platform.invoker._ledger
        complete = ledger.complete
        dropped: list[bool] = []

        async def drops(*args: Any) -> bool:
            if not dropped:
                dropped.append(True)
                if landed:
                    assert await complete(*args)
                raise StorageUnavailable("the line dropped")
            return bool(await complete(*args))

        ledger.complete = drops
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert len(world.effects) == 1
        assert await codes(h, run_id) == ["ok"]


@pytest.mark.guarantee("J3")
async def test_a_database_that_is_gone_before_the_first_byte_sends_nothing(database: str) -> None:
    """The watermark could not be set, so the handler must not send, and the call is free."""
    world = World()
    sent: list[str] = []

    async def does(ctx: CallContext, args: Any) -> Any:
        await ctx.before_first_byte()
        sent.append(args.text)
        return Done(id="1")

    tool = world.write(does=does, watermark="at_transport")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        ledger: Any = h.platform.invoker._ledger
        mark = ledger.mark_effect_sent
        dropped: list[bool] = []

        async def drops(claim: Any) -> bool:
            if not dropped:
                dropped.append(True)
                raise StorageUnavailable("the line dropped")
            return bool(await mark(claim))

        ledger.mark_effect_sent = drops
        run_id = await h.start()
        with pytest.raises(StorageUnavailable):
            await h.advance(run_id)
        assert sent == []
        assert await journal(h, run_id) == []
        assert (await h.settle(run_id)).state == "succeeded"
        assert sent == ["milk"]


@pytest.mark.guarantee("J5")
async def test_a_claim_taken_by_another_before_the_first_byte_sends_nothing(database: str) -> None:
    world = World()
    sent: list[str] = []
    made: list[Harness] = []

    async def does(ctx: CallContext, args: Any) -> Any:
        if len(world.effects) == 1:
            await execute(made[0], "update agent.idempotency_keys set attempt = attempt + 1")
        await ctx.before_first_byte()
        sent.append(args.text)
        return Done(id="1")

    tool = world.write(does=does, watermark="at_transport")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        made.append(h)
        run_id = await h.start()
        assert await h.advance(run_id) == "released"  # nobody else leads the run: it comes back, and the claim answers
        assert sent == []
        assert (await h.tree(run_id)).run["state"] == "running"
