"""How an app's answer is read."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from agentic.local.engine.answers import Answer, Raised, Reported, Returned, Unreached, read_answer
from agentic.local.engine.moments import parse_duration

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
SDK = {"x-inngest-sdk": "inngest-py:v0.5.19", "x-inngest-req-version": "2"}


def _read(status: int, body: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_answer(status=status, headers={**SDK, **named}, content=json.dumps(body).encode(), now=NOW)


def test_200_is_the_functions_value() -> None:
    assert _read(200, {"ok": 1}) == Returned(value={"ok": 1}, version=2)


def test_206_is_the_steps_it_reports() -> None:
    answer = _read(206, [{"id": "h", "op": "StepRun", "displayName": "a", "data": 1, "opts": {"parallelMode": "race"}}])
    assert isinstance(answer, Reported)
    (step,) = answer.steps
    assert (step.id, step.op, step.label, step.data, step.races) == ("h", "StepRun", "a", 1, True)


@pytest.mark.parametrize(
    ("header", "retry_at"),
    [
        ("2026-03-01T11:00:00.500Z", NOW + timedelta(hours=1, seconds=0.5)),
        ("90", NOW + timedelta(seconds=90)),
        ("Sun, 01 Mar 2026 10:05:00 GMT", NOW + timedelta(minutes=5)),
        ("soon", None),
        ("9" * 20, None),
        ("9" * 5000, None),
    ],
)
def test_a_retry_after_of_any_form_is_kept(header: str, retry_at: datetime | None) -> None:
    answer = _read(500, {"message": "later", "name": "RetryAfterError"}, retry_after=header)
    assert isinstance(answer, Raised)
    assert answer.retriable
    assert answer.retry_at == retry_at


def test_no_retry_is_kept() -> None:
    answer = _read(500, {"message": "no"}, x_inngest_no_retry="true")
    assert isinstance(answer, Raised)
    assert not answer.retriable


@pytest.mark.parametrize(
    ("status", "body"), [(206, []), (206, "x"), (206, [{"op": "Sleep"}]), (418, None), (500, 7), (200, float("nan"))]
)
def test_nonsense_from_an_app_is_a_failed_call(status: int, body: object) -> None:
    answer = _read(status, body)
    assert isinstance(answer, Raised)
    assert answer.retriable
    assert answer.error["message"]


def test_an_answer_of_something_else_than_an_app_means_the_app_was_not_reached() -> None:
    answer = read_answer(status=200, headers={}, content=b"hello", now=NOW)
    assert isinstance(answer, Unreached)


@pytest.mark.parametrize(("text", "seconds"), [("20s", 20), ("1h30m", 5400), ("2w", 1209600), ("250ms", 0.25)])
def test_durations_are_read_as_the_sdk_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "20", "s", "1 h", "None"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_duration(text)
