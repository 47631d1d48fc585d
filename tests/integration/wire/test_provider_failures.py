"""A provider that fails is asked again from the stored messages, or the run ends under a code that says what to mend (W4)."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from agno.models.openai import OpenAIChat

from agentic.contract.principal import RunCeilings
from agentic.local.providers.model import Answer, Hold, Refusal, Reply, Usage, Wire
from agentic.testing import Harness
from core_world import World, rows
from wire_stage import FORMATS, KEY, call, calls, wired

ASKED = calls(call("notes.save", "milk"))
DONE = Answer(text="Done.")
LONG = Answer(text="A long answer that does not arrive.")


async def run_row(h: Harness, run_id: UUID) -> dict[str, Any]:
    [row] = await rows(
        h,
        "select *, extract(epoch from due_at - clock_timestamp())::float as due_in_s from agent.runs where id = %(id)s",
        id=run_id,
    )
    return row


async def attempts(h: Harness) -> list[tuple[bool, int, int]]:
    """Success and tokens of every recorded request, in order."""
    listed = await rows(h, "select * from agent.ai_usage_log where kind = 'model' order by at")
    return [(row["ok"], row["input_tokens"], row["output_tokens"]) for row in listed]


def cut(answer: Answer, after: int) -> Answer:
    return Answer(text=answer.text, calls=answer.calls, wire=Wire(cut_after=after))


TRANSIENT: dict[str, Reply] = {
    "429": Refusal(status=429, code="rate_limit_exceeded"),
    "500": Refusal(status=500),
    "502 of a proxy": Refusal(status=502, body=b"<html>Bad Gateway</html>"),
    "503": Refusal(status=503),
    "529": Refusal(status=529),
    "408": Refusal(status=408),
    "cut before the first event": cut(LONG, 0),
    "cut in the text": cut(LONG, 3),
    "cut in the arguments": cut(ASKED, 3),
    "no choice at all": Answer(finish=None, wire=Wire(cut_after=None)),
    "a line that is not JSON": Answer(text=LONG.text, wire=Wire(raw={2: b'data: {"id": "chatcmpl\n\n'})),
    "an error inside the stream": Answer(
        text=LONG.text, wire=Wire(raw={2: b'data: {"error": {"message": "overloaded", "code": "server_error"}}\n\n'})
    ),
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
@pytest.mark.guarantee("W4", "J8")
async def test_a_failure_that_may_mend_releases_the_run_and_the_same_request_is_made_again(
    database: str, failure: Reply
) -> None:
    world = World()
    replies = [ASKED, failure, failure, failure, DONE]
    ceilings = RunCeilings(max_model_requests=2)
    async with wired(database, *replies, tools=[world.write()], ceilings=ceilings) as (h, provider):
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        row = await run_row(h, run_id)
        assert (row["state"], row["provider_failures"], row["attempts_without_progress"]) == ("running", 1, 0)
        assert row["lease_expires_at"] is None
        assert row["due_in_s"] is not None
        assert [role for role, _ in await h.messages(run_id)] == ["user", "assistant", "tool"]
        settled = await h.settle(run_id)
        assert (settled.state, settled.answer, settled.partial_reason) == ("succeeded", "Done.", None)
        assert world.of("notes.save") == ["milk"]
        again = {request.raw for request in provider.script.requests[1:]}
        assert len(provider.script.requests) == 5
        assert len(again) == 1, "each retry sends the bytes of the first try"
        assert [ok for ok, _, _ in await attempts(h)] == [True, False, False, False, True]


async def test_the_waits_grow_with_each_failure_in_a_row_and_start_anew_after_an_answer(database: str) -> None:
    world = World()
    down = Refusal(status=503)
    async with wired(database, down, down, down, ASKED, down, DONE, tools=[world.write()]) as (h, _):
        h.platform.leader._timings = type(h.platform.leader._timings)(lease_s=20, renew_s=5)
        run_id = await h.start()
        waits = []
        for _ in range(4):
            assert await h.advance(run_id) == "released"
            row = await run_row(h, run_id)
            waits.append((row["provider_failures"], row["due_in_s"]))
            assert await h.advance(run_id) == "idle", "it is not asked before its time"
            await rows(h, "update agent.runs set due_at = clock_timestamp() returning id")
        assert [failures for failures, _ in waits] == [1, 2, 3, 1]
        for (_, wait_s), expected_s in zip(waits, (15, 30, 60, 15), strict=True):
            assert expected_s - 10 < wait_s <= expected_s
        assert (await h.settle(run_id)).answer == "Done."


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_provider_that_says_when_to_come_back_is_asked_then(database: str, form: str) -> None:
    until = datetime.now(UTC) + timedelta(seconds=120)
    value = "120" if form == "seconds" else format_datetime(until, usegmt=True)
    async with wired(database, Refusal(status=429, retry_after=value), DONE, tools=[]) as (h, _):
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        wait_s = (await run_row(h, run_id))["due_in_s"]
        assert 90 < wait_s <= 121
        assert await h.advance(run_id) == "idle"
        await rows(h, "update agent.runs set due_at = clock_timestamp() returning id")
        assert (await h.settle(run_id)).answer == "Done."


PERMANENT = [
    (Refusal(status=400, code="unsupported_parameter"), "model_refused", "settings"),
    (Refusal(status=401, code="invalid_api_key"), "model_key_refused", "key"),
    (Refusal(status=403), "model_not_permitted", "grant"),
    (Refusal(status=404, code="model_not_found"), "model_not_found", "name"),
    (Refusal(status=400, code="context_length_exceeded"), "context_too_long", "larger model"),
    (Refusal(status=400, message="This model's maximum context length is 8192 tokens"), "context_too_long", "less"),
    (Refusal(status=429, code="insufficient_quota"), "model_quota_spent", "limit"),
]


@pytest.mark.parametrize("model", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("refusal", "code", "remedy"), PERMANENT, ids=[f"{r.status} {c}" for r, c, _ in PERMANENT])
@pytest.mark.guarantee("W4")
async def test_a_refusal_that_will_not_mend_ends_the_run_under_its_own_code_and_says_what_to_do(
    database: str, model: Any, refusal: Refusal, code: str, remedy: str
) -> None:
    world = World()
    async with wired(database, ASKED, refusal, DONE, tools=[world.write()], model=model) as (h, provider):
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", code)
        assert world.of("notes.save") == ["milk"], "what was done before stays done"
        assert provider.script.left == 1, "nobody asks again"
        tree = await h.tree(run_id)
        [segment] = [span for span in tree.spans if span["kind"] == "segment"]
        assert remedy in segment["attributes"]["said"]
        assert [ok for ok, _, _ in await attempts(h)] == [True, False]


async def test_a_refusal_inside_a_stream_goes_by_the_provider_s_word_for_it(database: str) -> None:
    said = b'data: {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}\n\n'
    async with wired(database, Answer(text=LONG.text, wire=Wire(raw={1: said})), DONE, tools=[]) as (h, _):
        settled = await h.settle(await h.start())
        assert (settled.state, settled.error_code) == ("failed", "context_too_long")


def _event(body: dict[str, Any]) -> bytes:
    return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


def _failed(code: str) -> bytes:
    response = {"id": "resp_1", "object": "response", "status": "failed", "output": []}
    error = {"code": code, "message": f"it failed: {code}"}
    return _event({"type": "response.failed", "sequence_number": 9, "response": {**response, "error": error}})


def _error(code: str) -> bytes:
    return _event({"type": "error", "sequence_number": 9, "code": code, "message": f"an error: {code}", "param": None})


@pytest.mark.parametrize("said", [_failed, _error], ids=["response.failed", "error"])
@pytest.mark.guarantee("W4")
async def test_an_error_event_of_the_responses_api_is_no_end_of_an_answer(database: str, said: Any) -> None:
    world = World()
    busy = Answer(calls=ASKED.calls, finish=None, wire=Wire(raw={4: said("server_error")}))
    refused = Answer(text=LONG.text, finish=None, wire=Wire(raw={3: said("invalid_prompt")}))
    async with wired(database, busy, ASKED, refused, DONE, tools=[world.write()], model=FORMATS["responses"]) as (
        h,
        provider,
    ):
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert [role for role, _ in await h.messages(run_id)] == ["user"]
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "model_refused")
        assert world.of("notes.save") == ["milk"]
        assert provider.script.left == 1


@pytest.mark.guarantee("B2")
async def test_a_key_that_a_provider_echoes_is_in_no_row_and_no_log(
    database: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = Refusal(status=401, message=f"Incorrect API key provided: {KEY}; header Bearer {KEY}")
    async with wired(database, refusal, tools=[]) as (h, _):
        run_id = await h.start()
        assert (await h.settle(run_id)).error_code == "model_key_refused"
        assert KEY not in repr(await h.tree(run_id))
        assert KEY not in repr(await rows(h, "select * from agent.ai_usage_log"))
    out, err = capfd.readouterr()
    assert KEY not in caplog.text + out + err


@pytest.mark.guarantee("M1")
async def test_a_cut_answer_costs_what_was_reported_before_the_cut(database: str) -> None:
    so_far = Answer(text=LONG.text, usage=Usage(output_tokens=11), wire=Wire(cut_after=3, usage_so_far=True))
    async with wired(database, so_far, cut(LONG, 3), DONE, tools=[]) as (h, _):
        assert (await h.settle(await h.start())).answer == "Done."
        assert await attempts(h) == [(False, 100, 11), (False, 0, 0), (True, 100, 20)]


async def test_a_provider_that_falls_silent_is_left_after_the_time_the_model_allows_it(database: str) -> None:
    hold = Hold(after=2)
    silent = Answer(text=LONG.text, wire=Wire(hold=hold))

    def impatient(url: str) -> OpenAIChat:
        return OpenAIChat(id="gpt-4o", api_key=KEY, base_url=url, timeout=0.3)

    async with wired(database, silent, DONE, tools=[], model=impatient) as (h, _):
        run_id = await h.start()
        assert await asyncio.wait_for(h.advance(run_id), 20) == "released"
        assert hold.reached.is_set()
        assert (await run_row(h, run_id))["provider_failures"] == 1
        assert (await h.settle(run_id)).answer == "Done."


async def test_a_run_that_is_cancelled_while_the_provider_is_down_ends_without_asking_it_again(database: str) -> None:
    async with wired(database, Refusal(status=503, retry_after="600"), DONE, tools=[]) as (h, provider):
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert await h.platform.runs.cancel(h.organization_id, run_id)
        assert (await h.settle(run_id)).state == "cancelled"
        assert provider.script.left == 1
