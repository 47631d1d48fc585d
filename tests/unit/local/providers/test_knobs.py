"""The knobs of stand-ins: what may be ordered, what then happens, and what is refused."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agentic.local.providers.exa import Exa
from agentic.local.providers.fullenrich import FullEnrichStandIn
from agentic.local.providers.fullenrich.reporting import FullEnrichKnobs
from agentic.local.providers.knobs import PATH, AnswerKnobs, Knobs, with_knobs
from agentic.local.providers.loopback_server import LoopbackServer
from agentic.local.providers.mail import MailStore, mail_app
from agentic.local.providers.mail.knobs import MailKnobs

KEY, GRANT, SECRET = "key-of-nobody", "11111111-1111-4111-8111-111111111111", "webhook-secret"


def client(app: Any, knobs: Knobs) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(with_knobs(app, knobs))
    return httpx.AsyncClient(
        transport=transport, base_url="http://vendor.test", headers={"authorization": f"Bearer {KEY}"}
    )


class Hook:
    """An address that takes deliveries, or refuses them."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.taken: list[tuple[bytes, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        body = (await receive())["body"]
        self.taken.append((body, {name.decode(): value.decode() for name, value in scope["headers"]}))
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def test_what_is_ordered_comes_in_turn_and_then_the_vendor_answers_by_itself() -> None:
    exa = Exa(KEY)
    async with client(exa, AnswerKnobs(exa)) as http:
        order = {"then": [{"status": 429, "json": {"error": "slow"}, "headers": {"retry-after": "2"}}]}
        assert (await http.post(PATH, json=order)).json() == {"ordered": 1}
        busy = await http.post("/search", json={"query": "x"})
        assert (busy.status_code, busy.json(), busy.headers["retry-after"]) == (429, {"error": "slow"}, "2")
        assert (await http.post("/search", json={"query": "x"})).status_code == 200
        assert (await http.get(PATH)).json() == {"requests": [{"method": "POST", "path": "/search"}] * 2}


@pytest.mark.parametrize("order", [b"", b"[]", b"{", b'{"than": []}', b'{"then": [{"status": 99}]}', b'{"then": 1}'])
async def test_an_order_that_there_is_not_is_refused_and_does_nothing(order: bytes) -> None:
    exa = Exa(KEY)
    async with client(exa, AnswerKnobs(exa)) as http:
        refused = await http.post(PATH, content=order, headers={"content-type": "application/json"})
        assert (refused.status_code, bool(refused.json()["error"])) == (400, True)
        assert (await http.post(PATH, content=b"{}", headers={"content-type": "text/plain"})).status_code == 405
        assert (await http.post("/search", json={"query": "x"})).status_code == 200


async def test_a_batch_is_ended_as_ordered_and_reported_as_often() -> None:
    hook, vendor = Hook(), FullEnrichStandIn(KEY)
    knobs = FullEnrichKnobs(vendor, after_s=3600)
    async with LoopbackServer(hook, name="hook") as server, client(vendor, knobs) as http:
        row = {"first_name": "Ida", "last_name": "Høl", "domain": "nordlys.example", "custom": {"ref": "a"}}
        batch = vendor.take({"name": "agentic:1", "webhook_url": server.url, "data": [row]})
        told = await http.post(PATH, json={"finish": {"times": 2}})
        assert told.json()["finished"] is True
        assert [body for body, _ in hook.taken] == [batch.body()] * 2
        assert (batch.status, batch.found) == ("FINISHED", {"a": "ida.hl@nordlys.example"})
        dry = vendor.take({"name": "agentic:2", "webhook_url": server.url, "data": [row]})
        await http.post(PATH, json={"finish": {"id": dry.id, "status": "CREDITS_INSUFFICIENT", "times": 0}})
        assert (dry.status, len(hook.taken)) == ("CREDITS_INSUFFICIENT", 2)
        assert (await http.post(PATH, json={"finish": {"id": "none"}})).json()["finished"] is False
        assert [each["status"] for each in (await http.get(PATH)).json()["batches"]] == [
            "FINISHED",
            "CREDITS_INSUFFICIENT",
        ]


@pytest.mark.parametrize("status", [200, 404])
async def test_mail_that_comes_and_a_grant_that_ends_are_told_with_a_good_signature(status: int) -> None:
    hook, store = Hook(status), MailStore()
    async with LoopbackServer(hook, name="hook") as server:
        knobs = MailKnobs(store, grant_id=GRANT, address="me@nordlys.example", secret=SECRET, events_to=server.url)
        async with client(mail_app(store, KEY, GRANT), knobs) as http:
            order = {
                "receive": [{"from": "ida@nordlys.example", "subject": "Hi", "message_id": "m-1"}],
                "grant": "invalid",
            }
            told = (await http.post(PATH, json=order)).json()
            assert told["events_taken"] == [status == 200] * 2
            for body, headers in hook.taken:
                assert headers["x-nylas-signature"] == hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            assert [b'"message.created"' in body for body, _ in hook.taken] == [True, False]
            assert (await http.get(f"/v3/grants/{GRANT}/messages")).status_code == 401
            await http.post(PATH, json={"grant": "valid", "reads": [{"status": 429, "retry_after": 1}]})
            assert (await http.get(f"/v3/grants/{GRANT}/messages")).status_code == 429
            [message] = (await http.get(f"/v3/grants/{GRANT}/messages")).json()["data"]
            assert message["id"] == "m-1"


async def test_a_send_that_is_ordered_to_fail_leaves_all_the_same_where_that_is_said() -> None:
    store = MailStore()
    knobs = MailKnobs(
        store, grant_id=GRANT, address="me@nordlys.example", secret=SECRET, events_to="http://127.0.0.1:9"
    )
    async with client(mail_app(store, KEY, GRANT), knobs) as http:
        await http.post(PATH, json={"sends": [{"status": 504, "after_accept": True}]})
        body = {"to": [{"email": "ida@nordlys.example"}], "subject": "Hi", "body": "Hi"}
        sends = [
            await http.post(f"/v3/grants/{GRANT}/messages/send", json=body, headers={"idempotency-key": "k"})
            for _ in "ab"
        ]
        assert [each.status_code for each in sends] == [504, 504]
        seen = (await http.get(PATH)).json()
        assert [each["replayed"] for each in seen["requests"]] == [False, True]
        assert [each["to"] for each in seen["sent"]] == [["ida@nordlys.example"]]
        assert (await http.post(PATH, json={"receive": [{"from": "ida@nordlys.example"}]})).json()["events_taken"] == [
            False
        ]
