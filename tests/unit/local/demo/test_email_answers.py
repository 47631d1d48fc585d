"""What each answer of the mail provider means: sent, surely not sent, or unknown."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from agentic.contract.results import ErrorCode
from agentic.local.demo.email_answers import read_answer
from agentic.services.tools.handlers.errors import DefiniteRefusal, OutcomeUnknown, RetryableUpstreamError
from agentic.services.tools.handlers.reply import Reply

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def _reply(status: int, content: Any = None, **headers: str) -> Reply:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Reply(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body)


def _error(status: int, kind: str, **headers: str) -> Reply:
    return _reply(status, {"request_id": "rq-1", "error": {"type": kind, "message": "why"}}, **headers)


@pytest.mark.parametrize("status", [200, 202])
def test_an_accepted_email_is_sent(status: int) -> None:
    sent = read_answer(_reply(status, {"data": {"id": "msg-1"}}), to="per@fjord.example", now=NOW)
    assert (sent.id, sent.to, sent.answered_from_key) == ("msg-1", "per@fjord.example", False)


def test_an_answer_from_the_providers_memory_says_so() -> None:
    reply = _reply(200, {"data": {"id": "msg-1"}}, idempotent_response="true")
    assert read_answer(reply, to="per@fjord.example", now=NOW).answered_from_key


@pytest.mark.guarantee("J4")
@pytest.mark.parametrize("content", [b"<html>", b"", b"[]", b'{"data":{"id":7}}', b'{"data":{"id":""}}'])
def test_an_accepted_email_whose_answer_cannot_be_read_was_sent_all_the_same(content: bytes) -> None:
    assert read_answer(_reply(200, content), to="per@fjord.example", now=NOW).id is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ErrorCode.UPSTREAM_REFUSED),
        (401, ErrorCode.CONNECTION_EXPIRED),
        (402, ErrorCode.UPSTREAM_REFUSED),
        (403, ErrorCode.CONNECTION_EXPIRED),
        (404, ErrorCode.UPSTREAM_REFUSED),
        (423, ErrorCode.UPSTREAM_REFUSED),
    ],
)
def test_a_refusal_is_definite_and_its_words_are_the_providers(status: int, code: ErrorCode) -> None:
    with pytest.raises(DefiniteRefusal) as refused:
        read_answer(_error(status, "invalid_request_error"), to="per@fjord.example", now=NOW)
    assert (refused.value.code, refused.value.retryable, refused.value.external_text) == (code, False, "why")
    assert "why" not in str(refused.value)


def test_throttling_is_worth_another_try_after_the_time_it_names() -> None:
    with pytest.raises(RetryableUpstreamError) as throttled:
        read_answer(_error(429, "rate_limit_error", retry_after="7"), to="per@fjord.example", now=NOW)
    assert throttled.value.retry_after_s == 7


@pytest.mark.parametrize("prefix", ["", "api."])
def test_a_key_used_for_another_email_is_refused_for_good(prefix: str) -> None:
    with pytest.raises(DefiniteRefusal) as refused:
        read_answer(_error(409, f"{prefix}invalid_idempotent_request"), to="per@fjord.example", now=NOW)
    assert refused.value.code is ErrorCode.CONFLICT


@pytest.mark.guarantee("J3")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (409, "api.concurrent_idempotent_request"),
        (409, ""),
        (408, ""),
        (302, ""),
        (500, "api.internal_error"),
        (502, ""),
        (504, "provider_error"),
        (599, ""),
    ],
)
def test_whatever_else_it_answers_the_email_may_have_left(status: int, kind: str) -> None:
    with pytest.raises(OutcomeUnknown) as unknown:
        read_answer(_error(status, kind), to="per@fjord.example", now=NOW)
    assert unknown.value.status == status
