import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentic.local.providers.mail import MailServer, MailStore, Message, Outgoing, Participant, StoreUnreadable, journal
from agentic.services.tools.handlers.errors import OutcomeUnknown
from agentic.services.tools.handlers.http import GovernedClient
from agentic.services.tools.handlers.reply import Reply

KEY = "nyk_test"
GRANT = "11111111-1111-4111-8111-111111111111"
PATIENCE_S = 20.0
MAIL = b'{"to":[{"name":"Per","email":"per@fjord.example"}],"subject":"Hello","body":"<p>Hi <b>Per</b></p>"}'


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class Provider:
    """One served store and a client that holds its key."""

    def __init__(self, store: MailStore, clock: Clock, client: GovernedClient, url: str) -> None:
        self.store, self.clock, self.client, self.url = store, clock, client, url

    async def send(self, body: bytes = MAIL, *, key: str | None = None, grant: str = GRANT) -> Reply:
        headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
        return await self.client.post_bytes(f"/v3/grants/{grant}/messages/send", body, headers=headers)

    async def get(self, path: str) -> tuple[int, Any]:
        reply = await self.client.get(f"/v3/grants{path}")
        return reply.status, json.loads(reply.body)


@pytest.fixture
async def mail() -> AsyncIterator[Provider]:
    clock = Clock()
    store = MailStore(clock=clock)
    async with (
        MailServer(store=store, api_key=KEY, grant_id=GRANT) as server,
        GovernedClient(origin=server.url, headers={"authorization": f"Bearer {KEY}"}) as client,
    ):
        yield Provider(store, clock, client, server.url)


def error_type(reply: Reply) -> str:
    found = json.loads(reply.body)["error"]["type"]
    assert isinstance(found, str)
    return found


async def test_a_sent_message_is_answered_in_the_vendors_shape_and_kept(mail: Provider) -> None:
    reply = await mail.send()
    answer = json.loads(reply.body)
    assert reply.status == 200
    assert "idempotent-response" not in reply.headers
    assert answer["grant_id"] == GRANT
    assert answer["data"]["object"] == "message"
    assert answer["data"]["schedule_id"] == ""
    assert answer["data"]["snippet"] == "Hi Per"
    assert answer["data"]["to"] == [{"email": "per@fjord.example", "name": "Per"}]
    assert answer["data"]["from"] == [{"email": "me@nordlys.example"}]
    assert [(kept.to, kept.subject) for kept in mail.store.messages] == [(("per@fjord.example",), "Hello")]
    assert mail.store.messages[0].id == answer["data"]["id"]


@pytest.mark.parametrize("authorization", [None, "Bearer other", "Basic bnlrX3Rlc3Q=", "Bearer"])
async def test_a_request_without_the_key_is_refused_and_sends_nothing(
    mail: Provider, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    async with GovernedClient(origin=mail.url, headers=headers) as stranger:
        reply = await stranger.post_bytes(f"/v3/grants/{GRANT}/messages/send", MAIL)
    assert (reply.status, error_type(reply)) == (401, "unauthorized")
    assert mail.store.messages == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"to":[]}',
        b'{"to":[{"email":"nobody"}]}',
        b'{"to":[{"email":"a@b.example"}],"send_at":1767225600}',
        b'{"to":[{"email":"a@b.example"}],"attachments":[{"filename":"a","content_type":"text/plain","content":"%"}]}',
    ],
)
async def test_a_payload_the_provider_cannot_act_on_is_a_400_and_sends_nothing(mail: Provider, body: bytes) -> None:
    reply = await mail.send(body)
    assert (reply.status, error_type(reply)) == (400, "api.invalid_request_payload")
    assert mail.store.messages == []


async def test_a_foreign_grant_and_a_foreign_path_are_404_in_the_vendors_shape(mail: Provider) -> None:
    foreign = await mail.send(grant="22222222-2222-4222-8222-222222222222")
    nowhere = await mail.client.get("/v3/nothing")
    assert (foreign.status, error_type(foreign)) == (404, "not_found_error")
    assert (nowhere.status, error_type(nowhere)) == (404, "not_found_error")


@pytest.mark.guarantee("J7")
async def test_a_repeat_under_the_same_key_replays_the_first_answer_and_sends_nothing(mail: Provider) -> None:
    first = await mail.send(key="k1")
    again = await mail.send(key="k1")
    assert (again.status, again.body) == (first.status, first.body)
    assert (first.headers.get("idempotent-response"), again.headers["idempotent-response"]) == (None, "true")
    assert len(mail.store.messages) == 1
    assert [(attempt.key, attempt.replayed) for attempt in mail.store.attempts] == [("k1", False), ("k1", True)]


async def test_another_key_or_none_sends_again(mail: Provider) -> None:
    for key in ("k1", "k2", None, None):
        await mail.send(key=key)
    assert len(mail.store.messages) == 4


async def test_a_key_protects_for_an_hour_and_not_longer(mail: Provider) -> None:
    await mail.send(key="k1")
    mail.clock.time += timedelta(minutes=59, seconds=59)
    assert (await mail.send(key="k1")).headers["idempotent-response"] == "true"
    mail.clock.time += timedelta(seconds=1)
    assert "idempotent-response" not in (await mail.send(key="k1")).headers
    assert len(mail.store.messages) == 2


async def test_the_same_key_with_another_payload_is_a_conflict_even_when_only_the_bytes_differ(mail: Provider) -> None:
    await mail.send(key="k1")
    reply = await mail.send(MAIL.replace(b'"subject":', b'"subject": '), key="k1")
    assert (reply.status, error_type(reply)) == (409, "api.invalid_idempotent_request")
    assert len(mail.store.messages) == 1


async def test_a_key_over_256_characters_is_refused_and_one_of_256_is_not(mail: Provider) -> None:
    long = await mail.send(key="k" * 257)
    assert (long.status, error_type(long)) == (400, "api.invalid_idempotency_key")
    assert (await mail.send(key="k" * 256)).status == 200
    assert len(mail.store.messages) == 1


async def test_a_second_request_while_the_first_still_runs_is_a_conflict(mail: Provider) -> None:
    hold = mail.store.hang_before_accept()
    first = asyncio.create_task(mail.send(key="k1"))
    await asyncio.wait_for(hold.reached.wait(), PATIENCE_S)
    second = await mail.send(key="k1")
    hold.release.set()
    assert (second.status, error_type(second)) == (409, "api.concurrent_idempotent_request")
    assert (await first).status == 200
    assert (await mail.send(key="k1")).headers["idempotent-response"] == "true"
    assert len(mail.store.messages) == 1


@pytest.mark.parametrize("retry_after", [None, 7])
async def test_throttling_stores_nothing_and_names_the_wait_only_when_told_to(
    mail: Provider, retry_after: int | None
) -> None:
    mail.store.fail_next(status=429, retry_after=retry_after)
    reply = await mail.send(key="k1")
    assert (reply.status, error_type(reply)) == (429, "rate_limit_error")
    assert reply.retry_after_s(mail.clock.now()) == retry_after
    assert mail.store.messages == []


async def test_a_remembered_error_stays_an_error_under_its_key_and_a_new_key_sends(mail: Provider) -> None:
    mail.store.fail_next(status=429)
    first = await mail.send(key="k1")
    again = await mail.send(key="k1")
    fresh = await mail.send(key="k2")
    assert (again.status, again.body, again.headers["idempotent-response"]) == (429, first.body, "true")
    assert fresh.status == 200
    assert len(mail.store.messages) == 1


async def test_an_error_that_is_not_remembered_leaves_the_key_free(mail: Provider) -> None:
    mail.store.fail_next(status=500, remembered=False)
    assert (await mail.send(key="k1")).status == 500
    assert (await mail.send(key="k1")).status == 200


async def test_a_504_may_hide_a_message_that_left(mail: Provider) -> None:
    mail.store.fail_next(status=504, after_accept=True)
    reply = await mail.send(key="k1")
    again = await mail.send(key="k1")
    assert (reply.status, error_type(reply)) == (504, "provider_error")
    assert (again.status, again.headers["idempotent-response"]) == (504, "true")
    assert len(mail.store.messages) == 1
    _, listed = await mail.get(f"/{GRANT}/messages?to=per@fjord.example")
    assert len(listed["data"]) == 1


async def test_an_answer_withheld_after_the_send_is_replayed_to_the_next_attempt(mail: Provider) -> None:
    hold = mail.store.hang_after_accept()
    deadline = asyncio.get_running_loop().time() + 2
    async with GovernedClient(
        origin=mail.url, headers={"authorization": f"Bearer {KEY}"}, deadline=deadline
    ) as impatient:
        with pytest.raises(OutcomeUnknown):
            await impatient.post_bytes(f"/v3/grants/{GRANT}/messages/send", MAIL, headers={"idempotency-key": "k1"})
    assert hold.reached.is_set()
    again = await mail.send(key="k1")
    assert (again.status, again.headers["idempotent-response"]) == (200, "true")
    assert len(mail.store.messages) == 1


async def test_whoever_listens_hears_of_a_message_after_it_is_kept_and_before_its_answer(mail: Provider) -> None:
    heard: list[tuple[str, int, int | None]] = []

    async def on_accepted(message: Message) -> None:
        await asyncio.sleep(0)
        heard.append((message.subject, len(mail.store.messages), mail.store.attempts[-1].status))

    mail.store.on_accepted = on_accepted
    await mail.send(key="k1")
    await mail.send(key="k1")
    assert heard == [("Hello", 1, None)]


async def test_a_listener_that_fails_does_not_undo_the_send_or_its_key(mail: Provider) -> None:
    def on_accepted(message: Message) -> None:
        raise RuntimeError("the worker is gone")

    mail.store.on_accepted = on_accepted
    assert (await mail.send(key="k1")).status == 500
    again = await mail.send(key="k1")
    assert (again.status, again.headers["idempotent-response"]) == (200, "true")
    assert len(mail.store.messages) == 1


async def test_an_invalid_grant_sends_nothing_and_says_so(mail: Provider) -> None:
    mail.store.grant_status = "invalid"
    reply = await mail.send()
    status, grant = await mail.get(f"/{GRANT}")
    assert (reply.status, error_type(reply)) == (401, "unauthorized")
    assert (status, grant["data"]["grant_status"]) == (200, "invalid")
    assert mail.store.messages == []


async def test_sent_messages_are_listed_newest_first_page_by_page(mail: Provider) -> None:
    for number in range(3):
        mail.clock.time += timedelta(seconds=1)
        await mail.send(MAIL.replace(b"Hello", f"Hello {number}".encode()))
    _, first = await mail.get(f"/{GRANT}/messages?limit=2&select=id,subject")
    _, second = await mail.get(f"/{GRANT}/messages?limit=2&page_token={first['next_cursor']}")
    assert [message["subject"] for message in first["data"]] == ["Hello 2", "Hello 1"]
    assert set(first["data"][0]) == {"id", "subject"}
    assert [message["subject"] for message in second["data"]] == ["Hello 0"]
    assert "next_cursor" not in second


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("any_email=PER@fjord.example", 1),
        ("to=ida@nordlys.example", 0),
        ("from=me@nordlys.example", 1),
        ("subject=hell", 1),
        ("subject=bye", 0),
        ("in=SENT", 1),
        ("in=INBOX", 0),
        ("received_after=1767225599", 1),
        ("received_before=1767225600", 0),
        ("has_attachment=true", 0),
        ("metadata_pair=op:42", 1),
        ("metadata_pair=op:43", 0),
    ],
)
async def test_a_filter_finds_what_it_names(mail: Provider, query: str, count: int) -> None:
    await mail.send(MAIL.replace(b"{", b'{"metadata":{"op":"42"},', 1))
    status, listed = await mail.get(f"/{GRANT}/messages?{query}")
    assert (status, len(listed["data"])) == (200, count)


@pytest.mark.parametrize("query", ["limit=201", "limit=0", "limit=x", "page_token=x", "search_query_native=a"])
async def test_a_query_the_provider_cannot_answer_is_refused_not_ignored(mail: Provider, query: str) -> None:
    status, answer = await mail.get(f"/{GRANT}/messages?{query}")
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


async def test_one_message_is_read_by_its_id_through_any_name_of_the_grant(mail: Provider) -> None:
    sent = json.loads((await mail.send()).body)["data"]
    for grant in (GRANT, f"grant:{GRANT}", "me@nordlys.example", "email:me@nordlys.example"):
        status, found = await mail.get(f"/{grant}/messages/{sent['id']}")
        assert (status, found["data"]) == (200, sent)
    status, _ = await mail.get(f"/{GRANT}/messages/msg-none")
    assert status == 404


async def test_what_others_wrote_stands_in_the_inbox_beside_what_was_sent(mail: Provider) -> None:
    await mail.send()
    mail.clock.time += timedelta(seconds=1)
    content = Outgoing.model_validate({"to": [{"email": "me@nordlys.example"}], "subject": "Re: Hello", "body": "Hi"})
    came = mail.store.receive(content, sender=Participant(email="per@fjord.example"), grant_id=GRANT)
    _, everything = await mail.get("/me/messages?select=subject,folders,unread")
    _, unread = await mail.get(f"/{GRANT}/messages?unread=true&in=INBOX&from=per@fjord.example")
    assert everything["data"] == [
        {"subject": "Re: Hello", "folders": ["INBOX"], "unread": True},
        {"subject": "Hello", "folders": ["SENT"], "unread": False},
    ]
    assert [message["id"] for message in unread["data"]] == [came.id]
    status, found = await mail.get(f"/me/messages/{came.id}?select=id,body")
    assert (status, found["data"]) == (200, {"id": came.id, "body": "Hi"})
    assert len(mail.store.messages) == 1


async def test_a_read_fails_as_it_was_ordered_to_and_then_answers_again(mail: Provider) -> None:
    mail.store.fail_next_read(status=429, retry_after=7)
    mail.store.lose_next_read()
    throttled = await mail.client.get(f"/v3/grants/{GRANT}/messages")
    assert (throttled.status, throttled.headers["retry-after"]) == (429, "7")
    with pytest.raises(OutcomeUnknown):
        await mail.get(f"/{GRANT}/messages")
    assert (await mail.get(f"/{GRANT}/messages"))[0] == 200
    mail.store.grant_status = "invalid"
    assert (await mail.get(f"/{GRANT}/messages"))[0] == 401


async def test_a_send_whose_answer_is_lost_has_left_and_is_replayed_whole(mail: Provider) -> None:
    mail.store.lose_next()
    with pytest.raises(OutcomeUnknown):
        await mail.send(key="k1")
    again = await mail.send(key="k1")
    assert (again.status, again.headers["idempotent-response"]) == (200, "true")
    assert [kept.id for kept in mail.store.messages] == [json.loads(again.body)["data"]["id"]]


async def test_a_restarted_provider_remembers_what_it_sent_and_under_which_key(tmp_path: Path) -> None:
    path = tmp_path / "mail.jsonl"
    headers = {"authorization": f"Bearer {KEY}"}
    bodies = []
    for store in (MailStore(path=path), None):
        store = store or MailStore(path=path)
        async with (
            MailServer(store=store, api_key=KEY, grant_id=GRANT) as server,
            GovernedClient(origin=server.url, headers=headers) as client,
        ):
            reply = await client.post_bytes(
                f"/v3/grants/{GRANT}/messages/send", MAIL, headers={"idempotency-key": "k1"}
            )
            bodies.append(reply.body)
    assert bodies[0] == bodies[1]
    assert reply.headers["idempotent-response"] == "true"
    assert len(MailStore(path=path).messages) == 1


async def test_a_line_cut_off_by_a_crash_is_dropped_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mail.jsonl"
    store = MailStore(path=path)
    await store.send(grant_id=GRANT, address="me@nordlys.example", key="k1", payload=MAIL)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert len(MailStore(path=path).messages) == 1
    assert path.read_bytes() == whole
    path.write_text("name,email\n")
    with pytest.raises(StoreUnreadable, match="line 1"):
        MailStore(path=path)


async def test_a_server_that_ends_lets_a_held_request_go(tmp_path: Path) -> None:
    store = MailStore()
    hold = store.hang_after_accept()
    async with asyncio.timeout(PATIENCE_S):
        async with MailServer(store=store, api_key=KEY, grant_id=GRANT) as server:
            client = GovernedClient(origin=server.url, headers={"authorization": f"Bearer {KEY}"})
            sending = asyncio.create_task(client.post_bytes(f"/v3/grants/{GRANT}/messages/send", MAIL))
            await hold.reached.wait()
        assert (await sending).status == 200
        await client.aclose()


def test_the_file_is_its_owners_alone_also_when_it_was_wider_before(tmp_path: Path) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.touch(mode=0o644)
    for path in (new, old):
        journal.write(path, journal.Line(grant_id=GRANT, message=None, key=None, remembered=None))
        assert path.stat().st_mode & 0o777 == 0o600
