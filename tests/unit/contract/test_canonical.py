"""The canonical form: golden vectors, an independent implementation as oracle, and laws."""

import json
import math
import struct
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.canonical import CanonicalError, canonical, digest, number_text
from agentic.contract.json_types import JsonValue
from agentic.contract.normal_form import nfc

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "canonical_vectors.json").read_text("utf-8"))

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(
    lambda t: unicodedata.normalize("NFC", t)
)
doubles = st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: n != 0 or math.copysign(1, n) > 0)
safe_integers = st.integers(-(2**53) + 1, 2**53 - 1)


def documents(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonValue]:
    """Values the form can carry."""
    scalars = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5), max_leaves=20
    )


@pytest.mark.parametrize("vector", VECTORS["numbers"], ids=lambda vector: vector["text"])
def test_a_double_is_printed_as_the_standard_prints_it(vector: dict[str, str]) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(vector["ieee"]))
    assert number_text(number) == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda vector: vector["name"])
def test_golden_values_keep_their_bytes_and_their_digest(vector: dict[str, str]) -> None:
    value = json.loads(vector["json"])
    assert canonical(value).decode() == vector["canonical"]
    assert digest(value) == vector["digest"]


@given(documents(doubles | safe_integers))
def test_an_independent_implementation_gives_the_same_bytes(value: JsonValue) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(documents(doubles | st.integers(-(10**40), 10**40)))
def test_reading_the_canonical_text_back_gives_the_same_text(value: JsonValue) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(texts, documents(doubles), min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(members: dict[str, JsonValue], random: Any) -> None:
    shuffled = list(members.items())
    random.shuffle(shuffled)
    assert digest(dict(shuffled)) == digest(members)


@given(documents(doubles))
def test_what_another_json_writer_prints_does_not_reach_the_digest(value: JsonValue) -> None:
    assert digest(json.loads(json.dumps(value, indent=1))) == digest(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (9007199254740992, 9007199254740993),
        ("1", 1),
        (True, 1),
        ({}, {"a": None}),
        ([], {}),
        ([1, 2], [2, 1]),
        (None, ""),
    ],
)
def test_different_values_have_different_digests(one: JsonValue, other: JsonValue) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 1),
        (1e2, 100),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"\U0001f600": 1, "\uffff": 2}, {"\uffff": 2, "\U0001f600": 1}),
        ({"x": 1e16}, {"x": 10**16}),
        ({"x": 2500.0}, {"x": 2500}),
    ],
)
def test_one_value_in_two_spellings_has_one_digest(one: JsonValue, other: JsonValue) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        "\ud800",
        {"\udc00": 1},
        {"é\udc00": 1},
        "a\0b",
        {"a\0": 1},
        {1: "a"},
        "e\u0301",
        {"e\u0301": 1},
        (1, 2),
        b"bytes",
        {1, 2},
        10**1001,
        pytest.param(object(), id="object"),
    ],
    ids=ascii,
)
def test_what_the_form_cannot_carry_is_refused_and_never_rounded(value: Any) -> None:
    with pytest.raises(CanonicalError):
        canonical({"inside": [value]})


def test_a_value_deeper_than_the_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    value: JsonValue = 1
    for _ in range(100):
        value = [value]
    assert canonical(value) == b"[" * 100 + b"1" + b"]" * 100
    with pytest.raises(CanonicalError, match="100 deep"):
        canonical([value])


def test_a_refusal_never_quotes_the_value() -> None:
    with pytest.raises(CanonicalError) as refused:
        canonical({"token": "tok_live_0123456789\0"})
    assert "tok_live" not in str(refused.value)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_text_brought_into_form_c_is_always_accepted(text: str) -> None:
    canonical(nfc({"text": [text]}))


def test_two_spellings_of_one_text_become_one_value() -> None:
    assert digest(nfc({"name": "Jose\u0301"})) == digest({"name": "José"})


def test_keys_that_become_equal_are_refused() -> None:
    with pytest.raises(CanonicalError, match="same text"):
        nfc({"é": 1, "e\u0301": 2})
