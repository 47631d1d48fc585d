"""How values become column values: nothing Postgres refuses ever reaches it."""

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.storage.encoding import jsonb, record, text


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        (None, None),
        ("", ""),
        ("plain", "plain"),
        ("a\0b", "a␀b"),
        ("half \ud800 here", "half \ufffd here"),
        ("\ud83d\ude00", "😀"),
        ("\\u0000", "\\u0000"),
        ("ü", "ü"),
    ],
)
def test_text_keeps_what_can_be_kept_and_shows_what_cannot(given_text: str | None, stored: str | None) -> None:
    assert text(given_text) == stored


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_can_be_encoded_and_holds_no_nul(anything: str) -> None:
    cleaned = text(anything)
    assert cleaned is not None
    cleaned.encode()
    assert "\0" not in cleaned


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_any_plain_value_becomes_jsonb_text_that_postgres_takes(value: object) -> None:
    written = jsonb(value)
    written.encode()
    json.loads(written)
    assert "\0" not in written
    assert "\\u0000" not in written.replace("\\\\", "")


def test_amounts_times_and_ids_keep_their_exact_text() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    value = {"id": uuid.UUID(int=1), "cost": Decimal("0.10"), "at": moment}
    assert json.loads(jsonb(value)) == {"id": str(uuid.UUID(int=1)), "cost": "0.10", "at": moment.isoformat()}


def test_a_value_without_a_column_form_is_a_defect_that_shows() -> None:
    with pytest.raises(TypeError, match="object has no column form"):
        jsonb({"x": object()})
    with pytest.raises(ValueError, match="JSON"):
        jsonb(float("nan"))


def test_two_keys_that_become_equal_keep_both_values() -> None:
    assert json.loads(jsonb({"a\0": 1, "a␀": 2})) == {"a␀": 1, "a␀ (2)": 2}


def test_a_record_is_shallow() -> None:
    @dataclass(frozen=True)
    class Line:
        name: str
        at: object

    inner = Line(name="inner", at=None)
    assert record(Line(name="outer", at=inner)) == {"name": "outer", "at": inner}
