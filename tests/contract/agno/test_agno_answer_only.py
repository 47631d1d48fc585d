"""A request for an answer only, as each provider class puts it on the wire (ADR 0028)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agno.models.base import Model
from agno_dialects import ALL, CHAT, CLAUDE, GEMINI, RESPONSES, Dialect
from agno_stage import StagedRun
from agno_wire import Reply, WireCall, provider

from agentic.contract.errors import RunEnded
from agentic.runtime.agent.aborts import SegmentAbort
from agentic.runtime.agent.agno.answer_only import DIRECTIVE
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.ports import ProposedCall, RunMessage, TurnCompleted, TurnPaused
from agentic.runtime.agent.script import Say

STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
DIALECTS = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
FORBIDDEN: dict[str, Callable[[dict[str, Any]], bool]] = {
    CHAT.name: lambda body: body["tool_choice"] == "none",
    RESPONSES.name: lambda body: body["tool_choice"] == "none",
    CLAUDE.name: lambda body: body["tool_choice"] == {"type": "none"},
    GEMINI.name: lambda body: body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}},
}
LAST_WORDS: dict[str, Callable[[dict[str, Any]], tuple[str, str]]] = {
    CHAT.name: lambda body: (body["messages"][-1]["role"], body["messages"][-1]["content"]),
    RESPONSES.name: lambda body: (body["input"][-1]["role"], body["input"][-1]["content"]),
    CLAUDE.name: lambda body: (body["messages"][-1]["role"], body["messages"][-1]["content"][-1]["text"]),
    GEMINI.name: lambda body: (body["contents"][-1]["role"], body["contents"][-1]["parts"][-1]["text"]),
}
READ = Reply(calls=(WireCall(id="c1", name="crm_search", arguments='{"q":"Ada"}'),))


def _said(body: dict[str, Any], dialect: Dialect) -> bool:
    return LAST_WORDS[dialect.name](body) == ("user", DIRECTIVE)


async def _bodies(
    dialect: Dialect, stream: bool, *replies: Reply, settings: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The requests of a run whose second one is for an answer only."""
    with provider(replies, dialect.encode(stream)) as endpoint:

        def model() -> Model:
            made = dialect.model(endpoint.base_url)
            for name, value in (settings or {}).items():
                setattr(made, name, value)
            return made

        run = StagedRun(model, stream=stream)
        inner = run.hooks.read

        async def read(call: ProposedCall) -> Any:
            run.hooks.answer_only = True
            return await inner(call)

        run.hooks.read = read  # type: ignore[method-assign]
        end = await run.turn()
        assert isinstance(end, TurnCompleted), end
        assert not any(DIRECTIVE.encode()[:40] in stored.body for stored in run.log)
        assert [stored.role for stored in run.log] == ["user", "assistant", "tool", "assistant"]
    return endpoint.bodies


@DIALECTS
@STREAMS
async def test_the_tools_stay_on_the_wire_and_none_may_be_chosen(dialect: Dialect, stream: bool) -> None:
    first, last = await _bodies(dialect, stream, READ, Reply(text="From what I have: Ada."))
    assert last["tools"] == first["tools"]
    assert len(dialect.results(last)) == 1
    assert FORBIDDEN[dialect.name](last)
    assert _said(last, dialect)
    assert not _said(first, dialect)
    assert first.get("tool_choice") in (None, "auto")
    assert "toolConfig" not in first


@DIALECTS
async def test_a_choice_the_user_set_for_the_model_does_not_win(dialect: Dialect) -> None:
    settings: dict[str, dict[str, Any]] = {
        CHAT.name: {"tool_choice": "required", "seed": 7},
        RESPONSES.name: {"tool_choice": "required", "user": "u1"},
        CLAUDE.name: {"tool_choice": {"type": "auto"}, "metadata": {"user_id": "u1"}},
        GEMINI.name: {},
    }
    own = settings[dialect.name]
    _, last = await _bodies(dialect, True, READ, Reply(text="Ada."), settings={"request_params": own})
    assert FORBIDDEN[dialect.name](last)
    kept = {name: value for name, value in own.items() if name != "tool_choice"}
    assert {name: last[name] for name in kept} == kept


@DIALECTS
async def test_where_there_are_no_tools_nothing_is_forbidden_and_the_model_is_told(dialect: Dialect) -> None:
    with provider([Reply(text="Ada.")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url), tools=())
        run.hooks.answer_only = True
        assert isinstance(await run.turn(), TurnCompleted)
        [body] = endpoint.bodies
    assert "tool_choice" not in body
    assert "toolConfig" not in body
    assert _said(body, dialect)


async def test_the_users_own_model_object_is_left_as_it_is() -> None:
    with provider([Reply(text="Ada.")], CLAUDE.stream) as endpoint:
        made = CLAUDE.model(endpoint.base_url)
        made.request_params = {"metadata": {"user_id": "u1"}}  # type: ignore[attr-defined]
        run = StagedRun(lambda: made)
        run.hooks.answer_only = True
        await run.turn()
    assert made.request_params == {"metadata": {"user_id": "u1"}}  # type: ignore[attr-defined]


async def test_the_next_turn_is_free_again_when_the_run_says_so() -> None:
    model = ScriptedModel(script=[Say("first"), Say("second")])
    run = StagedRun(lambda: model)
    run.hooks.answer_only = True
    await run.turn()
    run.hooks.answer_only = False
    await run.turn()
    assert [asked[-1].text == DIRECTIVE for asked in model.asked] == [True, False]


@DIALECTS
@STREAMS
@pytest.mark.parametrize("name", ["crm_search", "email_send"], ids=["read", "send"])
async def test_a_provider_that_answers_with_a_call_all_the_same_runs_nothing(
    dialect: Dialect, stream: bool, name: str
) -> None:
    reply = replace(READ, calls=(replace(READ.calls[0], name=name),))
    with provider([reply], dialect.encode(stream)) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url), stream=stream)
        run.hooks.answer_only = True
        inner = run.hooks.answered

        async def answered(assistant: RunMessage, calls: Any) -> None:
            await inner(assistant, calls)
            raise RunEnded(status="failed", code="tool_loop_detected", message="called a tool again")

        run.hooks.answered = answered  # type: ignore[method-assign]
        if name == "email_send":
            end = await run.turn()
            assert isinstance(end, TurnPaused)  # the run judges it before it stores a proposal
            assert [call.tool for call in end.calls] == ["email.send"]
        else:
            with pytest.raises(SegmentAbort) as stopped:
                await run.turn()
            assert isinstance(stopped.value.cause, RunEnded)
        assert run.hooks.reads == []
        assert len(endpoint.bodies) == 1
