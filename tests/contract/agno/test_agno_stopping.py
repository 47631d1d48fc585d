"""A segment stops where the run says so, with nothing of it lost and nothing of it run."""

import asyncio
from collections.abc import Sequence

import pytest
from agno_stage import BOUND_S, INSTRUCTIONS, TOOLS, Hooks, StagedRun

from agentic.runtime.agent.aborts import SegmentAbort
from agentic.runtime.agent.agno.runtime import AgnoLoop
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.ports import Answer, ProposedCall, RunMessage, Turn
from agentic.runtime.agent.script import Call, Calls, Say

STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
READ = Calls([Call("crm.search", {"q": "Ada"})])


@STREAMS
async def test_a_cap_raised_before_a_request_ends_the_segment_with_every_earlier_message_stored(stream: bool) -> None:
    class Capped(Hooks):
        async def before_request(self, new: Sequence[RunMessage]) -> bool:
            await super().before_request(new)
            if self.requests > 3:
                raise SegmentAbort("ceiling", "model_requests")
            return False

    model = ScriptedModel(script=[lambda seen: READ] * 50)
    run = StagedRun(lambda: model, stream=stream)
    run.hooks = Capped()
    with pytest.raises(SegmentAbort) as stopped:
        await run.turn()
    assert (stopped.value.kind, stopped.value.code) == ("ceiling", "model_requests")
    assert len(model.asked) == 3
    assert [message.role for message in run.hooks.stored] == ["assistant", "tool"] * 3
    assert run.loop().open_calls(run.log, run.tools) == []


@STREAMS
async def test_an_error_of_a_read_stops_the_segment_and_is_no_text_for_the_model(stream: bool) -> None:
    class Failing(Hooks):
        async def read(self, call: ProposedCall) -> Answer:
            if call.ordinal == 0:
                raise RuntimeError("the pool is gone")
            return await super().read(call)

    model = ScriptedModel(
        script=[Calls([Call("crm.search", {"q": "1"}), Call("email.send", {"q": "2"})]), Say("never")]
    )
    run = StagedRun(lambda: model, stream=stream)
    run.hooks = Failing()
    with pytest.raises(SegmentAbort) as stopped:
        await run.turn()
    assert (stopped.value.kind, stopped.value.code) == ("failed", "read_failed")
    assert isinstance(stopped.value.cause, RuntimeError)
    assert len(model.asked) == 1
    assert [call.tool for call in run.loop().open_calls(run.log, run.tools)] == ["crm.search", "email.send"]


async def test_the_first_stop_of_several_reads_is_the_one_that_counts_and_waiting_reads_do_not_start() -> None:
    class Stopping(Hooks):
        async def read(self, call: ProposedCall) -> Answer:
            self.reads.append(call)
            raise SegmentAbort("cancelled", f"by read {call.ordinal}")

    run = StagedRun(lambda: ScriptedModel(script=[Calls([Call("crm.search", {"q": str(i)}) for i in range(12)])]))
    run.hooks = Stopping()
    with pytest.raises(SegmentAbort) as stopped:
        await run.turn()
    assert stopped.value.code == "by read 0"
    assert len(run.hooks.reads) == 1


@pytest.mark.parametrize("hook", ["before_request", "answered", "read"])
@pytest.mark.parametrize("raised", [ValueError("broken"), asyncio.CancelledError()], ids=["error", "stray-cancel"])
async def test_whatever_a_hook_raises_ends_the_segment_as_failed(hook: str, raised: BaseException) -> None:
    async def broken(*given: object) -> None:
        raise raised

    run = StagedRun(lambda: ScriptedModel(script=[READ, Say("ok")]))
    setattr(run.hooks, hook, broken)
    with pytest.raises(SegmentAbort) as stopped:
        await run.turn()
    assert (stopped.value.kind, stopped.value.cause) == ("failed", raised)


async def test_an_attempt_that_cannot_be_recorded_ends_the_segment() -> None:
    def broken(attempt: object) -> None:
        raise ValueError("no usage log")

    run = StagedRun(lambda: ScriptedModel(script=[Say("ok")]))
    run.hooks.attempted = broken  # type: ignore[method-assign]
    with pytest.raises(SegmentAbort) as stopped:
        await run.turn()
    assert stopped.value.code == "attempt_not_recorded"


def _turn(loop: AgnoLoop) -> Turn:
    definition = AgentDefinition(name="staged", instructions=INSTRUCTIONS, model="staged")
    return Turn(definition=definition, tools=TOOLS, messages=[loop.user_message("hi")])


@STREAMS
async def test_a_cancelled_caller_waits_until_the_answer_in_flight_is_stored_and_its_reads_do_not_run(
    stream: bool,
) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def hold(number: int) -> None:
        asked.set()
        await go.wait()

    hooks = Hooks()
    loop = AgnoLoop({"staged": lambda: ScriptedModel(script=[READ, Say("never")], on_request=hold)}, stream=stream)
    turn = asyncio.ensure_future(loop.turn(_turn(loop), hooks))
    async with asyncio.timeout(BOUND_S):
        await asked.wait()
        turn.cancel()
        await asyncio.sleep(0)
        turn.cancel()  # an impatient caller
        await asyncio.sleep(0)
        assert not turn.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert hooks.events == ["request", "answered"]
    assert [attempt.ok for attempt in hooks.attempts] == [True]


async def test_a_cancelled_caller_does_not_wait_for_a_silent_provider_beyond_its_bound() -> None:
    asked = asyncio.Event()

    async def never(number: int) -> None:
        asked.set()
        await asyncio.Event().wait()

    hooks = Hooks()
    loop = AgnoLoop({"staged": lambda: ScriptedModel(script=[Say("x")], on_request=never)}, wind_down_s=0.05)
    turn = asyncio.ensure_future(loop.turn(_turn(loop), hooks))
    async with asyncio.timeout(BOUND_S):
        await asked.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert [attempt.ok for attempt in hooks.attempts] == [False]
