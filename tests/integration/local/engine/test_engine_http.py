"""The engine's front door: who may come in, and what a person is told who cannot."""

from __future__ import annotations

import httpx
import pytest
from engine_bench import Bench

from agentic.local.engine import AppUnreachable, FunctionEngine, NotLoopback, PortUnavailable


async def _post(bench: Bench, path: str, **request: object) -> httpx.Response:
    async with httpx.AsyncClient(base_url=bench.engine.url) as http:
        return await http.post(path, **request)  # type: ignore[arg-type]


async def test_one_event_or_a_list_is_taken_in_and_ids_come_back_in_order(bench: Bench) -> None:
    one = (await _post(bench, "/e/key", json={"name": "a", "id": "given"})).json()
    many = (
        await _post(bench, "/e/key", json=[{"name": "a", "id": "x"}, {"name": "b"}, {"name": "c", "id": "z"}])
    ).json()
    assert one == {"ids": ["given"], "status": 200}
    assert (many["ids"][0], len(many["ids"][1]), many["ids"][2]) == ("x", 26, "z")


async def test_what_is_no_event_is_refused_with_the_reason(bench: Bench) -> None:
    for body, says in (
        ('{"data": {}}', "has no name"),
        ('[{"name": "ok"}, 7]', "event 1 has no name"),
        ('{"name": "inngest/function.failed"}', "only the server may send"),
        ('{"name": "a", "data": [1]}', "not an object"),
        ('{"name": "a", "ts": "now"}', "whole milliseconds"),
        ('{"name": "a", "ts": true}', "whole milliseconds"),
        ('{"name": "a", "data": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}", "nested too deeply"),
        ('{"name": "a", "data": {"x": NaN}}', "NaN"),
        (r'{"name": "a\u0000"}', "zero byte"),
        ('{"name": ', "not JSON"),
    ):
        answer = await _post(bench, "/e/key", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400, body
        assert says in answer.json()["error"], body


async def test_a_request_under_another_host_name_is_refused(bench: Bench) -> None:
    answer = await _post(bench, "/e/key", json={"name": "a"}, headers={"host": "rebound.example"})
    assert answer.status_code == 400


async def test_a_form_of_a_web_page_cannot_send_events(bench: Bench) -> None:
    answer = await _post(bench, "/e/key", content='{"name": "a"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 400


async def test_an_app_outside_this_machine_is_refused(bench: Bench) -> None:
    with pytest.raises(NotLoopback, match=r"http://shop\.example/api/inngest"):
        await bench.engine.sync("http://shop.example/api/inngest")
    step = {"runtime": {"type": "http", "url": "http://shop.example/api/inngest"}}
    function = {"id": "shop-a", "steps": {"step": step}, "triggers": []}
    body = {"appname": "shop", "url": "http://shop.example/api/inngest", "functions": [function]}
    answer = await _post(bench, "/fn/register", json=body)
    assert answer.status_code == 400
    assert "shop.example" in answer.json()["error"]


async def test_a_malformed_registration_is_refused_with_the_reason(bench: Bench) -> None:
    url = "http://127.0.0.1:9/api/inngest"
    function = {"id": "shop-a", "steps": {"step": {"runtime": {"type": "http", "url": url}}}, "triggers": []}
    for changed, says in (
        ({"triggers": "x"}, "cannot be read"),
        ({"triggers": [7]}, "cannot be read"),
        ({"id": "shop-\0"}, "cannot store it"),
        ({"concurrency": 5}, "cannot be read"),
    ):
        body = {"appname": "shop", "url": url, "functions": [{**function, **changed}]}
        answer = await _post(bench, "/fn/register", json=body)
        assert (answer.status_code, answer.json()["ok"]) == (400, False), changed
        assert says in answer.json()["error"], changed


async def test_an_app_that_does_not_answer_is_named_with_what_to_do(bench: Bench) -> None:
    with pytest.raises(AppUnreachable, match=r"http://127\.0\.0\.1:9/api/inngest .*start the app first"):
        await bench.engine.sync("http://127.0.0.1:9/api/inngest")


async def test_a_taken_port_is_named_with_what_to_do(bench: Bench) -> None:
    port = int(bench.engine.url.rpartition(":")[2])
    with pytest.raises(PortUnavailable, match=rf"127\.0\.0\.1:{port} .*stop the program.*port 0"):
        await FunctionEngine(dsn=bench.dsn, port=port).start()


async def test_the_engine_listens_on_loopback_only(bench: Bench) -> None:
    with pytest.raises(NotLoopback):
        await FunctionEngine(dsn=bench.dsn, host="0.0.0.0").start()
