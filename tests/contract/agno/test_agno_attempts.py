"""Each request to a provider is one request and one row, whatever became of it."""

import json
from decimal import Decimal

import pytest
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno_dialects import ALL, CHAT, CLAUDE, GEMINI, RESPONSES, Dialect
from agno_stage import Hooks, StagedRun
from agno_wire import Encoded, Reply, WireCall, provider

from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.ports import TurnCompleted, TurnFailed, TurnPaused
from agentic.runtime.agent.script import Fail, Say, Usage

DIALECTS = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
MODES = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])


@DIALECTS
@MODES
@pytest.mark.guarantee("M1")
async def test_a_server_error_is_one_request_one_failed_row_and_the_next_turn_goes_on_from_the_same_log(
    dialect: Dialect, stream: bool
) -> None:
    with provider([Reply(status=500), Reply(text="ok")], dialect.encode(stream)) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url), stream=stream)
        failed = await run.turn()
        requests_of_the_first = len(endpoint.bodies)
        ended = await run.turn()
        assert endpoint.bodies[0] == endpoint.bodies[1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "model_unavailable"
    assert requests_of_the_first == 1
    assert isinstance(ended, TurnCompleted)
    first, second = run.hooks.attempts
    assert (first.ok, first.input_tokens, first.output_tokens) == (False, 0, 0)
    assert first.error is not None
    assert (second.ok, second.error) == (True, None)
    # the wire says 100, 64 and 20 each time; one counts the cached ones beside the input, one the reasoning beside the output
    assert (second.input_tokens, second.cached_tokens) == (164 if dialect.name == "anthropic" else 100, 64)
    assert second.output_tokens == (27 if dialect.name == "gemini" else 20)
    assert second.model == dialect.model("").id


async def test_a_cost_the_provider_reports_is_kept_as_a_decimal() -> None:
    with provider([Reply(text="ok")], CHAT.stream) as endpoint:
        run = StagedRun(lambda: CHAT.model(endpoint.base_url))
        await run.turn()
    assert run.hooks.attempts[0].cost == Decimal("0.0042")
    assert run.hooks.attempts[0].reasoning_tokens == 7


async def test_an_answer_at_its_limit_is_paid_for_too() -> None:
    with provider([Reply(text="The", stop="limit")], RESPONSES.stream) as endpoint:
        run = StagedRun(lambda: RESPONSES.model(endpoint.base_url))
        await run.turn()
    assert (run.hooks.attempts[0].input_tokens, run.hooks.attempts[0].output_tokens) == (100, 20)


@pytest.mark.parametrize("dialect", [CLAUDE, GEMINI], ids=lambda dialect: dialect.name)
@pytest.mark.guarantee("M1")
async def test_an_answer_that_breaks_off_costs_what_was_reported_so_far(dialect: Dialect) -> None:
    with provider([Reply(text="The answer", stop=stop) for stop in ("missing", "whole")], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        whole = StagedRun(lambda: dialect.model(endpoint.base_url))
        await run.turn()
        await whole.turn()
    assert run.hooks.attempts[0].input_tokens == whole.hooks.attempts[0].input_tokens >= 100


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("overloaded_error", "model_unavailable"),
        ("api_error", "model_unavailable"),
        ("invalid_request_error", "model_refused"),
    ],
)
async def test_an_error_inside_claude_s_stream_goes_by_its_type_though_its_status_was_good(
    said: str, code: str
) -> None:
    def broken(reply: Reply) -> Encoded:
        error = {"type": "error", "error": {"type": said, "message": "in the middle"}}
        start = CLAUDE.stream(reply).body.split(b"event: message_delta")[0]
        return Encoded(
            content_type="text/event-stream", body=start + f"event: error\ndata: {json.dumps(error)}\n\n".encode()
        )

    with provider([Reply(text="The answer")], broken) as endpoint:
        end = await StagedRun(lambda: CLAUDE.model(endpoint.base_url)).turn()
    assert isinstance(end, TurnFailed)
    assert end.code == code


@DIALECTS
async def test_a_rate_limit_says_when_to_come_back(dialect: Dialect) -> None:
    with provider([Reply(status=429, headers={"retry-after": "7"})], dialect.stream) as endpoint:
        run = StagedRun(lambda: dialect.model(endpoint.base_url))
        end = await run.turn()
        assert len(endpoint.bodies) == 1
    assert isinstance(end, TurnFailed)
    assert (end.code, end.retry_after_s) == ("model_unavailable", 7.0)


@DIALECTS
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "model_refused"),
        (401, "model_key_refused"),
        (403, "model_not_permitted"),
        (404, "model_not_found"),
    ],
)
async def test_a_refusal_will_not_mend_by_itself(dialect: Dialect, status: int, code: str) -> None:
    with provider([Reply(status=status)], dialect.stream) as endpoint:
        end = await StagedRun(lambda: dialect.model(endpoint.base_url)).turn()
    assert isinstance(end, TurnFailed)
    assert end.code == code


@DIALECTS
@pytest.mark.guarantee("B2")
async def test_a_provider_that_cannot_be_reached_may_be_tried_again_and_its_key_is_in_no_error(
    dialect: Dialect,
) -> None:
    with provider([], dialect.stream) as endpoint:
        gone = endpoint.base_url
    model = dialect.model(gone)
    run = StagedRun(lambda: model)
    end = await run.turn()
    assert isinstance(end, TurnFailed)
    assert end.code == "model_unavailable"
    key = model.api_key  # type: ignore[attr-defined]
    assert key not in end.message
    assert all(key not in (attempt.error or "") for attempt in run.hooks.attempts)


async def test_an_echoed_key_is_taken_out_of_the_error() -> None:
    model = ScriptedModel(
        script=[Say("x")], failures={0: Fail(401, "Incorrect API key provided: sk-live-abcdefgh12345678")}
    )
    run = StagedRun(lambda: model)
    end = await run.turn()
    assert isinstance(end, TurnFailed)
    assert end.code == "model_key_refused"
    assert "abcdefgh" not in end.message
    assert "abcdefgh" not in str(run.hooks.attempts[0].error)


async def test_scripted_usage_and_failures_go_through_the_same_rows() -> None:
    model = ScriptedModel(
        script=[Say("ok")],
        usage=Usage(input_tokens=5, output_tokens=3, cached_tokens=2, reasoning_tokens=1, cost=Decimal("0.25")),
        failures={0: Fail(503, retry_after_s=2)},
    )
    run = StagedRun(lambda: model)
    failed = await run.turn()
    assert isinstance(failed, TurnFailed)
    assert (failed.code, failed.retry_after_s) == ("model_unavailable", 2.0)
    assert isinstance(await run.turn(), TurnCompleted)
    row = run.hooks.attempts[1]
    assert (row.input_tokens, row.output_tokens, row.cached_tokens, row.reasoning_tokens) == (5, 3, 2, 1)
    assert row.cost == Decimal("0.25")


async def test_the_users_model_object_is_left_as_it_was() -> None:
    with provider([Reply(text="ok")] * 2, CHAT.stream) as endpoint:
        chat = OpenAIChat(id="gpt-4o", api_key="sk-test", base_url=f"{endpoint.base_url}/v1", max_retries=5, retries=3)
        before = dict(chat.__dict__)
        await StagedRun(lambda: chat).turn()
        assert chat.__dict__ == before
    with provider([Reply(text="ok")], RESPONSES.stream) as endpoint:
        responses = OpenAIResponses(id="gpt-5-mini", api_key="sk-test", base_url=f"{endpoint.base_url}/v1")
        await StagedRun(lambda: responses).turn()
        assert (responses.store, responses.use_previous_response_id, responses.async_client) == (None, True, None)
        assert endpoint.bodies[0]["store"] is False


async def test_a_client_of_the_users_own_is_used_without_its_retries_and_stays_open() -> None:
    with provider([Reply(status=500), Reply(text="ok")], CHAT.stream) as endpoint:
        chat = OpenAIChat(id="gpt-4o", api_key="sk-test", base_url=f"{endpoint.base_url}/v1", max_retries=4)
        client = chat.get_async_client()
        run = StagedRun(lambda: chat)
        assert isinstance(await run.turn(), TurnFailed)
        assert len(endpoint.bodies) == 1
        assert isinstance(await run.turn(), TurnCompleted)
        assert not client.is_closed()
        assert client.max_retries == 4
        await client.close()


async def test_responses_go_on_from_our_log_and_never_from_the_providers() -> None:
    call = WireCall(id="call_1", name="email_send", arguments='{"q": "x"}')
    with provider([Reply(calls=(call,)), Reply(text="ok")], RESPONSES.stream) as endpoint:
        run = StagedRun(lambda: RESPONSES.model(endpoint.base_url))
        assert isinstance(await run.turn(), TurnPaused)
        run.drain()
        await run.turn()
        body = endpoint.bodies[1]
    assert "previous_response_id" not in body
    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        "developer",
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
    ]


async def test_hooks_are_asked_before_each_request() -> None:
    hooks = Hooks()
    run = StagedRun(lambda: ScriptedModel(script=[Say("x")], failures={0: Fail()}))
    run.hooks = hooks
    await run.turn()
    await run.turn()
    assert hooks.requests == 2
