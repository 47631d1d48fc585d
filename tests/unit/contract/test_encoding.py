"""The one encoding."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.encoding import encode, encoded_size
from agentic.contract.json_types import JsonValue

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
documents: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@pytest.mark.guarantee("B4")
@given(documents)
def test_what_is_encoded_reads_back_as_the_same_value_in_the_same_order(value: JsonValue) -> None:
    read = json.loads(encode(value))
    assert read == value
    assert encode(read) == encode(value)


@pytest.mark.guarantee("B4")
def test_keys_keep_their_order_and_nothing_is_padded() -> None:
    assert encode({"b": 1, "a": ["é", 1e16, 0.1]}) == '{"b":1,"a":["é",1e+16,0.1]}'.encode()


@given(documents)
def test_the_size_is_the_length_of_what_is_rendered(value: JsonValue) -> None:
    assert encoded_size(value) == len(encode(value))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"], ids=ascii)
def test_what_json_or_utf8_cannot_carry_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError):
        encode([value])
