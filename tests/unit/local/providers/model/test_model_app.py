"""The model provider of the desk: what it answers, keeps and refuses, without a network."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from agentic.local.providers.model import Answer, Hold, ModelCall, ModelScript, Refusal, Reply, Wire, model_app

CALL = ModelCall(name="notes_save", arguments='{"text": "Zoë"}', id="call_1")


@asynccontextmanager
async def provider(*replies: Reply) -> AsyncIterator[tuple[httpx.AsyncClient, ModelScript]]:
    script = ModelScript(*replies)
    transport = httpx.ASGITransport(app=model_app(script))
    async with httpx.AsyncClient(transport=transport, base_url="http://model.test/v1") as client:
        yield client, script


def events(body: bytes) -> list[Any]:
    """The events of a stream, but for its end mark."""
    data = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
@pytest.mark.parametrize("wire", [Wire(), Wire(piece_chars=1, packet_bytes=1), Wire(interleaved=True)])
async def test_a_stream_holds_the_arguments_in_pieces_however_it_is_packed(path: str, wire: Wire) -> None:
    async with provider(Answer(text="Zoë", calls=(CALL,), wire=wire)) as (client, script):
        answer = await client.post(path, json={"stream": True, "messages": [{"role": "user", "content": "Hi."}]})
        found = events(answer.content)
    if path == "/responses":
        pieces = [e["delta"] for e in found if e["type"] == "response.function_call_arguments.delta"]
        assert found[-1]["response"]["status"] == "completed"
    else:
        deltas = [choice["delta"] for e in found for choice in e["choices"]]
        pieces = [d["tool_calls"][0]["function"]["arguments"] for d in deltas if "tool_calls" in d]
        assert found[-1]["usage"]["total_tokens"] == 120
        assert found[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert "".join(pieces) == CALL.arguments
    assert script.requests[0].messages == [{"role": "user", "content": "Hi."}]


@pytest.mark.parametrize(("path", "at"), [("/chat/completions", "choices"), ("/responses", "output")])
async def test_a_request_without_a_stream_is_answered_whole(path: str, at: str) -> None:
    async with provider(Answer(calls=(CALL,), finish="length")) as (client, _):
        body = (await client.post(path, json={})).json()
    assert CALL.arguments in json.dumps(body[at], ensure_ascii=False).replace('\\"', '"')
    assert "length" in json.dumps(body) or body["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_a_refusal_has_its_status_its_word_and_the_time_to_come_back() -> None:
    async with provider(Refusal(status=429, code="rate_limit_exceeded", retry_after="7")) as (client, _):
        answer = await client.post("/chat/completions", json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"


async def test_a_request_past_the_end_of_the_script_is_refused_and_says_so() -> None:
    async with provider(lambda request: Answer(text=f"{len(request.messages)} messages")) as (client, script):
        assert "0 messages" in (await client.post("/chat/completions", json={})).text
        assert script.left == 0
        past = await client.post("/chat/completions", json={})
        assert past.status_code == 422
        assert "request 2" in past.json()["error"]["message"]
        script.add(Answer(text="more"))
        assert (await client.post("/chat/completions", json={})).status_code == 200


async def test_what_is_no_request_of_a_model_takes_no_reply() -> None:
    async with provider(Answer(text="kept")) as (client, script):
        assert (await client.get("/chat/completions")).status_code == 404
        assert (await client.post("/embeddings", json={})).status_code == 404
        assert (await client.post("/chat/completions", content=b"no json")).status_code == 400
        assert (script.left, script.requests) == (1, [])


async def test_credentials_are_not_kept() -> None:
    async with provider(Answer()) as (client, script):
        await client.post("/chat/completions", json={}, headers={"authorization": "Bearer sk-secret"})
        assert "sk-secret" not in repr(script.requests)


async def test_an_answer_that_is_held_goes_on_when_everything_is_released() -> None:
    hold = Hold(after=1)
    async with provider(Answer(text="late", wire=Wire(hold=hold))) as (client, script):
        asked = asyncio.ensure_future(client.post("/chat/completions", json={"stream": True}))
        await asyncio.wait_for(hold.reached.wait(), 20)
        assert not asked.done()
        script.release_all()
        assert b"late" in (await asyncio.wait_for(asked, 5)).content
