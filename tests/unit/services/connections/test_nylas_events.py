"""Events of Nylas: which bytes are believed, and what is read of them."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.deliveries import Unreadable
from agentic.contract.errors import ProgramFault
from agentic.services.connections.nylas import NylasEvents
from agentic.services.tools.handlers.email import EU_ORIGIN, US_ORIGIN, nylas_origin

SECRET = "demo-webhook-secret"
OF_THE_APPLICATION = (
    b'{"specversion":"1.0","type":"message.created","source":"/google/emails/realtime","id":"ntf-1","time":1767225600,'
    b'"data":{"application_id":"app-1","object":{}}}'
)
SIGNATURE = "5fc3272c0ea3c8c17c639cdbc1fbd5ec304bda3a0a57389d28697ac0ffdf448d"
GRANT = "11111111-1111-4111-8111-111111111111"


def events(*secrets: str) -> NylasEvents:
    return NylasEvents(secrets or (SECRET,))


def body(kind: str = "message.created", **changed: Any) -> bytes:
    data = {"application_id": "app-1", "grant_id": GRANT, "object": {"id": "msg-1", "subject": "a word of a person"}}
    whole = {"specversion": "1.0", "type": kind, "id": "ntf-1", "time": 1767225600, "data": data, **changed}
    return json.dumps(whole).encode()


def test_the_signature_of_either_secret_counts_and_no_other() -> None:
    headers = {"x-nylas-signature": SIGNATURE}
    assert events().verify(OF_THE_APPLICATION, headers)
    assert events("the-secret-after-it", SECRET).verify(OF_THE_APPLICATION, headers)
    assert events().verify(OF_THE_APPLICATION, {"x-nylas-signature": SIGNATURE.upper()})
    assert not events("the-secret-after-it").verify(OF_THE_APPLICATION, headers)
    assert not events().verify(OF_THE_APPLICATION + b" ", headers)
    assert not events().verify(OF_THE_APPLICATION, {})
    assert not events().verify(OF_THE_APPLICATION, {"x-nylas-signature": "é"})


@pytest.mark.parametrize("secrets", [(), ("",), (SECRET, "short")])
def test_without_a_secret_there_is_nothing_to_tell_anybody_by(secrets: tuple[str, ...]) -> None:
    with pytest.raises(ProgramFault, match="webhook_secret"):
        NylasEvents(secrets)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "compressed"])
def test_an_event_is_read_by_its_ids_and_holds_no_word_of_a_message(pack: Any) -> None:
    event = events().read(pack(body()))
    assert event is not None
    assert (event.delivery_id, event.type, event.at) == ("ntf-1", "message.created", 1767225600)
    assert (event.account, event.object_id) == ({"grant_id": GRANT}, "msg-1")
    assert (event.ends_consent, event.truncated) == (False, False)
    assert "word" not in repr(event)


def test_what_was_truncated_is_the_same_event_with_that_said() -> None:
    event = events().read(body("message.created.truncated"))
    assert event is not None
    assert (event.type, event.truncated) == ("message.created", True)


@pytest.mark.parametrize("where", ["data", "object"])
def test_a_grant_that_expired_ends_the_consent_wherever_it_is_named(where: str) -> None:
    data = {"application_id": "app-1", "object": {}}
    (data if where == "data" else data["object"])["grant_id"] = GRANT  # type: ignore[index]
    event = events().read(body("grant.expired", data=data))
    assert event is not None
    assert event.ends_consent
    assert event.account == {"grant_id": GRANT}


def test_an_event_of_the_whole_application_is_of_no_account() -> None:
    event = events().read(OF_THE_APPLICATION)
    assert event is not None
    assert event.account == {}


@pytest.mark.parametrize(
    "kind", ["calendar.created", "grant.created", "messages.created", "message.", "message.UP", ""]
)
def test_other_events_are_not_used(kind: str) -> None:
    assert events().read(body(kind)) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        body(type=3),
        body(id=None),
        body(id="two words"),
        body(id="i" * 201),
        gzip.compress(body())[:-4],
        gzip.compress(body()) + b"more",
        b"\x1f\x8b" + b"x" * 40,
        gzip.compress(b" " * (5 * 1024 * 1024)),
    ],
    ids=["empty", "list", "no type", "no id", "blank", "long", "cut", "more", "damaged", "bomb"],
)
def test_what_is_no_event_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        events().read(raw)


@pytest.mark.parametrize("odd", [True, "soon", -1, 10**12, None, 1.5])
def test_a_time_that_is_none_is_no_time(odd: object) -> None:
    event = events().read(body(time=odd))
    assert event is not None
    assert event.at is None


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "grant_id", "object"]), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(["message.created", "message.updated.truncated", "grant.expired", "thread.replied"])


@given(st.fixed_dictionaries({"type": KINDS | ANY, "id": st.just("ntf-1") | ANY, "time": ANY, "data": ANY}))
def test_an_event_of_any_shape_is_read_not_used_or_unreadable(payload: dict[str, Any]) -> None:
    try:
        event = events().read(json.dumps(payload).encode())
    except Unreadable:
        return
    if event is not None:
        assert event.account.keys() <= {"grant_id"}
        assert event.at is None or (type(event.at) is int and event.at >= 0)
        assert all(
            text.isascii() and text.isprintable() for text in (event.delivery_id, event.type, event.object_id or "")
        )


def test_a_challenge_is_answered_with_itself_alone() -> None:
    assert (
        events().challenge({"challenge": "bc609b38-c81f-47fb-a275-1d9bd61be968"})
        == "bc609b38-c81f-47fb-a275-1d9bd61be968"
    )
    assert events().challenge({}) is None
    assert events().challenge({"challenge": "two\r\nlines"}) is None
    assert events().challenge({"challenge": "c" * 201}) is None


def test_secrets_and_the_region_are_read_from_the_environment() -> None:
    headers = {"x-nylas-signature": SIGNATURE}
    assert NylasEvents.from_environment({"NYLAS_WEBHOOK_SECRET": f"the-next-secret, {SECRET}"}).verify(
        OF_THE_APPLICATION, headers
    )
    with pytest.raises(ProgramFault, match="webhook_secret"):
        NylasEvents.from_environment({})
    assert nylas_origin({}) == US_ORIGIN
    assert nylas_origin({"NYLAS_ORIGIN": EU_ORIGIN}) == EU_ORIGIN
    assert nylas_origin({"NYLAS_ORIGIN": "http://127.0.0.1:4000"}) == "http://127.0.0.1:4000"
    with pytest.raises(ProgramFault, match="only a stand-in"):
        nylas_origin({"NYLAS_ORIGIN": "https://elsewhere.example"})
