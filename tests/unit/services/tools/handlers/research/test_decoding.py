"""Vendor JSON as values: whatever bytes come, an amount is exact or missing, and no error quotes what it could not read."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.services.tools.handlers.research import AnswerUnreadable
from agentic.services.tools.handlers.research.decoding import Wire, amount, decoded, shaped


@given(st.binary())
def test_whatever_the_bytes_are_decoding_never_raises(body: bytes) -> None:
    content = decoded(body)
    assert content is None or isinstance(content, dict)


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"<html>", b"\xff", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_what_is_no_object_is_none(body: bytes) -> None:
    assert decoded(body) is None


@pytest.mark.guarantee("M3")
def test_a_fraction_is_exact() -> None:
    content = decoded(b'{"total": 0.1, "other": 0.30000000000000004}')
    assert content == {"total": Decimal("0.1"), "other": Decimal("0.30000000000000004")}


@given(st.decimals(min_value=0, max_value=10**6, places=6))
def test_an_amount_that_was_named_is_taken_to_the_last_digit(number: Decimal) -> None:
    content = decoded(b'{"total": ' + format(number, "f").encode() + b"}")
    assert content is not None
    assert amount(content["total"]) == number


@given(st.none() | st.booleans() | st.text() | st.integers(max_value=-1) | st.lists(st.integers()) | st.floats())
def test_what_is_no_amount_is_missing(value: Any) -> None:
    assert amount(value) is None
    assert amount(Decimal("NaN")) is None
    assert amount(Decimal("1e40")) is None


class Shape(Wire):
    """A list of numbers."""

    numbers: list[int]


@pytest.mark.guarantee("B2")
def test_an_answer_of_another_shape_is_named_by_its_place_and_never_quoted() -> None:
    with pytest.raises(AnswerUnreadable, match=r"Exa: .* at numbers\.1$") as refused:
        shaped(Shape, json.loads('{"numbers": [1, "secret of somebody"]}'), vendor="Exa")
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
