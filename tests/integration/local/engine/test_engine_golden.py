"""The recorded exchanges with an Inngest server hold for the installed SDK, and for the embedded engine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import inngest.fast_api
from engine_bench import Bench
from fastapi import FastAPI
from wire_functions import CANCEL_EVENT, wire_functions

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "inngest-0.5.19.jsonl").read_text(encoding="utf-8").splitlines()
][1:]
CALLS = [exchange for exchange in RECORDED if exchange["request"]["method"] == "POST"]
SYNCS = [exchange for exchange in RECORDED if exchange["request"]["method"] == "PUT"]

_ULID = re.compile(r"^[0-9A-HJKMNP-TV-Z]{26}$")
_MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_OPAQUE = {"fn_id", "job_id", "qi_id", "request_id", "stack_trace", "ts"}


def _masked(value: Any, key: str = "") -> Any:
    """The value without what differs from run to run: ids, times, stack traces."""
    if key in _OPAQUE or (key == "stack" and isinstance(value, str)):
        return "…"
    if key == "stack" and isinstance(value, list):
        return sorted(value)  # two parallel steps finish in either order
    if isinstance(value, dict):
        return {name: _masked(entry, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [_masked(entry) for entry in value]
    if isinstance(value, str) and _ULID.match(value):
        return "<id>"
    if isinstance(value, str) and _MOMENT.match(value):
        return "<moment>"
    return value


class Recorder:
    """Stands in front of an app and keeps what passes."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert not message.get("more_body"), "the recorder takes requests in one piece"
        names = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append(
            {
                "method": scope["method"],
                "path": scope["path"],
                "query": dict(httpx.QueryParams(scope["query_string"])),
                "headers": {name: value for name, value in names.items() if name.startswith("x-")},
                "body": json.loads(message["body"] or '""'),
            }
        )
        pending = [message]

        async def replay() -> Any:
            return pending.pop() if pending else await receive()

        await self.app(scope, replay, send)


async def test_the_sdk_answers_each_recorded_call_as_it_did(bench: Bench) -> None:
    client = bench.new_client("wire")
    url = await bench.serve(*wire_functions(client), client=client)
    async with httpx.AsyncClient() as http:
        for exchange in CALLS:
            request, expected = exchange["request"], exchange["response"]
            answer = await http.post(url, params=request["query"], headers=request["headers"], json=request["body"])
            assert answer.status_code == expected["status"], request
            assert _masked(answer.json()) == _masked(expected["body"]), request
            for name in ("x-inngest-no-retry", "retry-after", "x-inngest-req-version", "x-inngest-sdk"):
                assert _masked(answer.headers.get(name)) == _masked(expected["headers"].get(name)), (name, request)


async def test_the_engine_sends_the_recorded_requests(bench: Bench) -> None:
    client = bench.new_client("wire")
    app = FastAPI()
    inngest.fast_api.serve(app, client, wire_functions(client))
    recorder = Recorder(app)
    await bench.engine.sync(await bench.serve_app(recorder))
    assert recorder.requests.pop() == SYNCS[0]["request"]

    sends = {
        (exchange["request"]["body"]["event"]["id"], exchange["request"]["body"]["event"]["name"]): exchange["request"][
            "body"
        ]["event"]["data"]
        for exchange in CALLS
        if exchange["request"]["body"]["event"]["name"] in ("steps", "waits", "fails", "never.retry", "long")
    }
    quoted, plain = ((name, data) for (_, name), data in sends.items() if name == "waits")
    for (event_id, name), data in sends.items():
        if name != "waits":
            await bench.send(name, data, event_id=event_id if event_id == "ev-1" else "")
    await bench.waiting("wire-cancelled", "z")
    await bench.send(CANCEL_EVENT)
    await bench.run_of("wire-cancelled", "cancelled")
    bench.jump(3)  # over the retry-after and the nap
    await bench.run_of("wire-steps")
    await bench.run_of("wire-fails-failure")

    await bench.send(*quoted)
    await bench.waiting("wire-waits", "hit")
    await bench.send("answer", quoted[1])
    bench.jump(20.1)
    await bench.waiting("wire-waits", "miss")
    bench.jump(2.1)
    await bench.run_of("wire-waits")
    await bench.send(*plain)
    await bench.waiting("wire-waits", "hit")
    await bench.send("answer", {"k": "plain", "v": 5})
    await bench.waiting("wire-waits", "miss")
    bench.jump(2.1)
    await bench.run_of("wire-waits")
    if not await bench.engine.runs("wire-cron"):
        bench.jump(60)
    await bench.run_of("wire-cron")
    await bench.engine.idle(5)

    expected, sent = _by_run([call["request"] for call in CALLS]), _by_run(recorder.requests)
    assert sorted(sent) == sorted(expected)
    for run, requests in expected.items():
        assert sent[run] == requests, run


def _by_run(requests: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The masked requests of each run in order, under a name that is the same each time; one cron run is enough."""
    runs: dict[str, list[Any]] = {}
    for request in requests:
        runs.setdefault(request["headers"]["x-run-id"], []).append(request)
    named = {}
    for calls in runs.values():
        event = _masked(calls[0]["body"]["event"])
        name = f"{calls[0]['query']['fnId']} on {json.dumps(event['data'], sort_keys=True)}"
        targeted = [_masked(call) for call in calls if call["query"]["stepId"] != "step"]
        named[name] = [_masked(call) for call in calls if call["query"]["stepId"] == "step"]
        named[name] += sorted(targeted, key=lambda call: str(call["query"]["stepId"]))
    return named
