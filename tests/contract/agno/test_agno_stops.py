"""An answer that the provider cut never becomes a call that may run."""

import pytest
from agno_dialects import ALL, CHAT, CLAUDE, RESPONSES, Dialect
from agno_stage import StagedRun
from agno_wire import Reply, WireCall, provider

from agentic.runtime.agent.ports import TurnCompleted, TurnPaused

DIALECTS = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)


@DIALECTS
@pytest.mark.parametrize("stop", ["limit", "missing"])
async def test_calls_of_a_cut_answer_are_marked_and_none_of_them_runs(dialect: Dialect, stop: str) -> None:
    calls = (
        WireCall(id="call_1", name="crm_search", arguments='{"q": "Ada"}'),
        WireCall(id="call_2", name="email_send", arguments='{"q": "whole by itself"}'),
    )
    with provider([Reply(calls=calls, stop=stop), Reply(text="ok")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        end = await run.turn()
        assert isinstance(end, TurnPaused)
        assert [(call.tool, call.fault) for call in end.calls] == [("crm.search", "cut_off"), ("email.send", "cut_off")]
        assert run.hooks.reads == []
        assert run.loop().open_calls(run.log, run.tools) == list(end.calls)
        run.drain()
        assert isinstance(await run.turn(), TurnCompleted)


@pytest.mark.parametrize("stop", ["limit", "missing"])
async def test_a_call_the_sdk_repaired_into_a_smaller_valid_one_is_still_known_as_cut(stop: str) -> None:
    cut = WireCall(id="call_1", name="email_send", arguments='{"q": "hello", "body": "Dear')
    with provider([Reply(calls=(cut,), stop=stop)], CLAUDE.stream) as endpoint:
        end = await StagedRun(lambda: CLAUDE.model(endpoint.base_url)).turn()
    assert isinstance(end, TurnPaused)
    assert [call.arguments_text for call in end.calls] == ['{"q": "hello"}']
    assert [call.fault for call in end.calls] == ["cut_off"]


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES], ids=lambda dialect: dialect.name)
async def test_plain_answers_at_their_limit_are_marked_too(dialect: Dialect) -> None:
    calls = (WireCall(id="call_1", name="email_send", arguments='{"q": "x"}'),)
    with provider([Reply(calls=calls, stop="limit")], dialect.plain) as endpoint:
        end = await StagedRun(lambda: dialect.model(endpoint.base_url), stream=False).turn()
    assert isinstance(end, TurnPaused)
    assert [call.fault for call in end.calls] == ["cut_off"]


@DIALECTS
@pytest.mark.parametrize("stop", ["limit", "missing"])
async def test_a_final_text_that_was_cut_says_so(dialect: Dialect, stop: str) -> None:
    with provider([Reply(text="The answer is", stop=stop)], dialect.stream) as endpoint:
        end = await StagedRun(lambda: dialect.model(endpoint.base_url)).turn()
    assert isinstance(end, TurnCompleted)
    assert (end.text, end.cut_off) == ("The answer is", True)
