"""Signatures over raw bytes, with the published shapes of both schemes and whatever else a header may hold."""

import base64
import hashlib
import hmac
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.errors import ProgramFault
from agentic.contract.signatures import StandardWebhooks, signed_in_hex

BATCH = (
    b'{"id":"00000000-0000-4000-8000-000000000001","name":"demo","status":"FINISHED","cost":{"credits":1},"data":[]}'
)
OF_BATCH = "775be59cdecc69ca64df64ecc3ecb08d0cc3a7f0"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
READY = b'{"type":"demo.ready","data":{"n":1}}'
OF_READY = "v1,BVoPEr22GAeU6EJY2hVV4+exvFnvOX3A2g5XiFqXmac="
AT = 1767225600
HEADERS = {"webhook-id": "msg_demo_0001", "webhook-timestamp": str(AT), "webhook-signature": OF_READY}


def check(
    headers: Mapping[str, str], *, body: bytes = READY, secrets: tuple[str, ...] = (SECRET,), now_s: float = AT
) -> bool:
    return StandardWebhooks(secrets).verify(body, headers, now_s=now_s)


@pytest.mark.parametrize("signature", [OF_BATCH, OF_BATCH.upper(), f" {OF_BATCH} "])
def test_a_hexadecimal_signature_counts_in_either_case(signature: str) -> None:
    assert signed_in_hex(BATCH, signature, keys=["other-key", "demo-api-key"], algorithm="sha1")
    assert not signed_in_hex(BATCH + b"\n", signature, keys=["demo-api-key"], algorithm="sha1")
    assert not signed_in_hex(BATCH, signature, keys=["other-key"], algorithm="sha1")
    assert not signed_in_hex(BATCH, signature, keys=[], algorithm="sha1")


@given(st.one_of(st.none(), st.text(), st.text("0123456789abcdefABCDEF ", max_size=60)))
def test_no_other_header_counts_and_none_raises(signature: str | None) -> None:
    assert signed_in_hex(BATCH, signature, keys=["demo-api-key"], algorithm="sha1") is False or (
        signature is not None and signature.strip().lower() == OF_BATCH
    )


def test_standard_webhooks_signatures_count_under_both_sets_of_names_and_any_valid_key() -> None:
    assert check(HEADERS)
    assert check({name.replace("webhook-", "svix-"): value for name, value in HEADERS.items()})
    newer = "whsec_" + base64.b64encode(b"n" * 32).decode()
    assert check(HEADERS, secrets=(newer, SECRET))
    assert check({**HEADERS, "webhook-signature": f"v1a,c2ln v2,x {OF_READY}"})
    assert not check(HEADERS, secrets=(newer,))


@pytest.mark.parametrize("away", [-301, 301])
def test_a_timestamp_far_from_now_does_not_count(away: float) -> None:
    assert check(HEADERS, now_s=AT + away * 0.9)
    assert not check(HEADERS, now_s=AT + away)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "msg_demo_0002"},
        {"webhook-id": ""},
        {"webhook-timestamp": str(AT + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "٣"},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-signature": OF_READY.removeprefix("v1,")},
        {"webhook-signature": OF_READY.replace("v1,", "v1a,")},
        {"webhook-signature": f"{OF_READY},more"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,é"},
    ],
)
def test_what_is_changed_or_malformed_does_not_count_and_raises_nothing(change: Mapping[str, str]) -> None:
    assert not check({**HEADERS, **change})


def test_the_text_of_a_secret_is_no_key() -> None:
    signed = f"msg_demo_0001.{AT}.".encode() + READY
    of_text = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
    assert not check({**HEADERS, "webhook-signature": f"v1,{of_text}"})


@pytest.mark.parametrize("secrets", [(), ("whsec_",), ("whsec_short",), ("whsec_!!!!",), (SECRET, "whsec_AAEC")])
def test_a_secret_of_another_form_is_refused(secrets: tuple[str, ...]) -> None:
    with pytest.raises(ProgramFault):
        StandardWebhooks(secrets)
