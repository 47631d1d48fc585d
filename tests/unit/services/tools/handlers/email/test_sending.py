"""What each answer to a send means, and the request it is an answer to."""

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.handlers.email.send_email import Email, preview, request_body
from agentic.services.tools.handlers.email.sending import SentEmail, sent
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown
from agentic.services.tools.handlers.reply import Reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = {400, 403, 404, 423, 429}


@dataclass(kw_only=True)
class Looking:
    """As much of a call's context as a preview uses."""

    name: str = "Ada's mail"
    answer: Any = None
    silent: bool = False
    remaining_s: float = 10.0

    @property
    def connection(self) -> "Looking":
        return self

    async def fact(self, name: str) -> Any:
        assert name == "new_recipients"
        if self.silent:
            await asyncio.Event().wait()
        return self.answer


async def line_of(email: Email, **looking: Any) -> str:
    return await preview(Looking(**looking), email)  # type: ignore[arg-type]


def answer(status: int, body: bytes = b"", *, recipients: int = 1, answers_another: bool = False) -> SentEmail:
    reply = Reply(status=status, headers={"retry-after": "7"}, body=body)
    return sent(reply, recipients=recipients, answers_another=answers_another, now=NOW)


def letter(**said: Any) -> Email:
    return Email.model_validate({"to": ["per@fjord.example"], "subject": "Hello", "body": "Hi Per", **said})


@pytest.mark.guarantee("J3")
@given(status=st.integers(100, 599), body=st.binary(max_size=60))
def test_only_a_status_of_the_vendor_s_table_says_that_nothing_left(status: int, body: bytes) -> None:
    if status in (200, 202):
        assert answer(status, body).message_id is None
    elif status in REFUSED | {402}:
        with pytest.raises(DefiniteRefusal):
            answer(status, body)
    else:
        with pytest.raises(OutcomeUnknown):
            answer(status, body)


@pytest.mark.guarantee("J3")
def test_a_refusal_of_one_recipient_says_nothing_of_the_others() -> None:
    with pytest.raises(DefiniteRefusal):
        answer(402)
    with pytest.raises(OutcomeUnknown):
        answer(402, recipients=2)


@pytest.mark.guarantee("J7")
@pytest.mark.parametrize("kind", ["api.concurrent_idempotent_request", "api.invalid_idempotent_request"])
def test_a_conflict_of_keys_means_that_a_request_of_this_call_was_there_before(kind: str) -> None:
    with pytest.raises(OutcomeUnknown):
        answer(409, json.dumps({"error": {"type": kind, "message": "…"}}).encode())


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"data":null}', b'{"data":{"id":""}}', b'{"data":{"id":7,"thread_id":"a\\nb"}}']
)
def test_an_accepted_email_left_whatever_its_answer_looks_like(body: bytes) -> None:
    assert answer(200, body) == SentEmail(message_id=None, thread_id=None)


def test_a_throttled_send_names_its_wait_and_the_vendor_s_words_are_not_ours() -> None:
    body = json.dumps({"error": {"type": "rate_limit_error", "message": "slow " * 200}}).encode()
    with pytest.raises(DefiniteRefusal) as refused:
        answer(429, body)
    assert refused.value.leaves_no_claim
    assert refused.value.retry_after_s == 7
    assert refused.value.external_text == ("slow " * 200)[:500]
    assert "slow" not in str(refused.value)


@pytest.mark.guarantee("J7")
def test_the_request_is_made_of_the_arguments_alone_byte_for_byte() -> None:
    written = letter(cc=["ida@nordlys.example"], body="Grüße, Per")
    again = Email.model_validate(json.loads(written.model_dump_json()))
    assert request_body(written) == request_body(again)
    assert request_body(letter(connection_id="11111111-1111-4111-8111-111111111111")) == request_body(letter())


@pytest.mark.guarantee("A6")
async def test_the_line_for_the_person_counts_everybody_and_fits_whatever_is_in_it() -> None:
    host = ".".join(["d" * 63] * 2 + ["example"])
    many = [f"{'p' * 60}{number}@{host}" for number in range(10)]
    line = await line_of(letter(to=many, bcc=["per@fjord.example"], subject="😀" * 200), answer=10)
    start = f"one message from Ada's mail to 11 recipients (10 of them new): {many[0]} and 10 more; subject: 😀"
    assert line.startswith(start)
    assert len(line.encode()) <= 512
    everything = letter(
        to=[f"{'p' * 60}@{'d' * 63}.{'d' * 63}.{'d' * 55}.example"], cc=many, bcc=many, subject="å" * 200
    )
    answering = everything.model_copy(update={"reply_to_message_id": "m1"})
    line = await line_of(answering, answer=3, name="ø" * 120)
    assert line.startswith(f"one message from {'ø' * 38}… to 11 recipients (3 of them new), as an answer: ")
    assert line.endswith("å…")
    assert len(line.encode()) <= 512
    longest = f"{'p' * 100}@{host}"
    assert len((await line_of(letter(to=[longest], subject="å" * 200), answer=1)).encode()) <= 512


@pytest.mark.guarantee("A6")
@pytest.mark.parametrize(
    ("looking", "said"),
    [
        ({"answer": 2}, "2 new recipients"),
        ({"answer": 1}, "2 recipients (1 of them new)"),
        ({"answer": 0}, "2 recipients"),
        ({"answer": None}, "2 recipients"),
        ({"silent": True, "remaining_s": 0.05}, "2 recipients"),
    ],
    ids=["all", "some", "none", "not known", "no answer in time"],
)
async def test_the_line_says_who_is_new_and_does_without_where_that_is_not_known_soon(
    looking: dict[str, Any], said: str
) -> None:
    line = await line_of(letter(cc=["ida@nordlys.example"]), **looking)
    assert line == f"one message from Ada's mail to {said}: per@fjord.example, ida@nordlys.example; subject: Hello"
