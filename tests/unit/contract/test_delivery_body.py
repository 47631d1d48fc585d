"""A verified body becomes plain data, or is unreadable: it never raises anything else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.deliveries import Unreadable
from agentic.contract.delivery_body import MAX_DEPTH, object_of
from agentic.services.provider_jobs.fullenrich.projection import MAX_EMAIL_BYTES, projected
from agentic.services.provider_jobs.fullenrich.wire import report_of
from agentic.services.provider_jobs.models import JobState

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        nested(MAX_DEPTH + 1),
        b"[" * 100_000,
        b'{"a":' + b"1" * 5000 + b"}",
    ],
    ids=[
        "empty",
        "list",
        "null",
        "cut",
        "nan",
        "infinity",
        "too far",
        "latin",
        "mark",
        "deep",
        "very deep",
        "long number",
    ],
)
def test_what_is_no_object_that_can_be_kept_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        object_of(raw)


def test_a_body_as_deep_as_allowed_is_read() -> None:
    assert object_of(nested(MAX_DEPTH)).keys() == {"a"}


@given(st.dictionaries(st.sampled_from(["id", "name", "status", "cost", "data"]), VALUES))
def test_a_report_of_any_shape_is_read_or_unreadable(payload: dict[str, object]) -> None:
    try:
        report = report_of(payload)
    except Unreadable:
        return
    assert report.state in JobState
    assert report.cost is None or report.cost.quantity >= 0


@given(VALUES, st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=4))
def test_every_reference_has_exactly_one_line_whatever_the_provider_wrote(data: object, refs: list[str]) -> None:
    found = projected({"data": data}, refs)
    assert [line.ref for line in found.results] == refs
    assert all((line.email is not None) is (line.outcome == "found") for line in found.results)


def test_the_largest_projection_of_a_whole_batch_fits_the_boundary() -> None:
    """25 contacts with the longest references and addresses that can be: within 32 KiB, without loss."""
    refs = [chr(0x1F600 + n) * 64 for n in range(25)]
    email = "é" * ((MAX_EMAIL_BYTES - 10) // 2) + "@y.example"[:10]
    rows = [
        {"custom": {"ref": ref}, "contact_info": {"most_probable_work_email": {"email": email, "status": "S" * 32}}}
        for ref in refs
    ]
    found = projected({"data": rows}, refs)
    assert {line.outcome for line in found.results} == {"found"}
    assert len(json.dumps([line.model_dump() for line in found.results], ensure_ascii=False).encode()) < 31 * 1024
