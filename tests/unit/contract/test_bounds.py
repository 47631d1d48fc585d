"""Bounding: whole, valid, within the limit, and honest about what was left out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic.contract.bounds import MAX_PATHS, bound, is_marker
from agentic.contract.encoding import encode, encoded_size
from agentic.contract.json_types import JsonValue

LIMIT = 32 * 1024
texts = st.text(st.characters(exclude_categories=["Cs"]))
long_texts = st.builds(lambda text, times: text * times, texts, st.integers(1, 200))
scalars = st.none() | st.booleans() | st.integers(-(10**60), 10**60) | texts | long_texts
documents: st.SearchStrategy[JsonValue] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30
)


def dropped(size: int) -> JsonValue:
    return {"__dropped__": {"reason": "too_large", "bytes": size}}


@pytest.mark.guarantee("B1")
@given(documents, st.integers(2, 2_000))
def test_the_result_never_takes_more_than_the_limit_and_reads_as_json(value: JsonValue, limit: int) -> None:
    result = bound(value, limit)
    rendered = encode(result.value)
    assert len(rendered) <= limit
    assert json.loads(rendered) == result.value


@given(documents, st.integers(2, 2_000))
def test_bounding_twice_changes_nothing_more(value: JsonValue, limit: int) -> None:
    once = bound(value, limit).value
    again = bound(once, limit)
    assert again.value == once
    assert not again.truncated
    assert again.dropped == ()


@pytest.mark.guarantee("B1")
@given(documents, st.integers(2, 2_000))
def test_whatever_was_left_out_is_named_and_what_fits_is_untouched(value: JsonValue, limit: int) -> None:
    result = bound(value, limit)
    fits = encoded_size(value) <= limit
    assert result.truncated is not fits
    assert bool(result.dropped) is not fits
    if fits:
        assert result.value is value


@given(documents, st.integers(2, 2_000))
def test_bounding_leaves_its_argument_as_it_was(value: JsonValue, limit: int) -> None:
    before = encode(value)
    bound(value, limit)
    assert encode(value) == before


def test_an_item_too_large_becomes_a_marker_at_its_index() -> None:
    rows: JsonValue = [{"id": "p-1"}, {"id": "p-2", "notes": "n" * 40_000}, {"id": "p-3"}]
    result = bound(rows, LIMIT)
    assert result.value == [{"id": "p-1"}, dropped(40_023), {"id": "p-3"}]
    assert result.dropped == ("/1",)


def test_an_object_too_large_in_an_object_becomes_a_marker_under_its_key() -> None:
    result = bound({"a": 1, "big": {"id": 7, "blob": "x" * 40_000}, "z": 2}, LIMIT)
    assert result.value == {"a": 1, "big": dropped(40_018), "z": 2}
    assert result.dropped == ("/big",)


def test_every_oversized_item_is_replaced_before_any_item_is_dropped() -> None:
    rows: JsonValue = ["small", {"blob": "x" * 500}, "last"]
    assert bound(rows, 80).value == ["small", dropped(511), "last"]


def test_items_that_fit_alone_but_not_together_are_dropped_from_the_end() -> None:
    rows: JsonValue = [{"id": number, "text": "t" * 1_000} for number in range(100)]
    result = bound(rows, LIMIT)
    assert isinstance(rows, list)
    assert isinstance(result.value, list)
    kept = len(result.value)
    assert result.value == rows[:kept]
    assert encoded_size(rows[: kept + 1]) > LIMIT
    assert result.dropped == (f"/{kept}-99",)


def test_rows_inside_an_answer_are_shortened_where_they_stand_and_the_members_beside_them_stay() -> None:
    rows: list[JsonValue] = [{"id": number, "text": "t" * 1_000} for number in range(100)]
    result = bound({"data": {"items": rows, "next": "c2"}, "ok": True}, LIMIT)
    assert isinstance(result.value, dict)
    data: Any = result.value["data"]
    assert result.value["ok"] is True
    assert data["next"] == "c2"
    kept = len(data["items"])
    assert data["items"] == rows[:kept]
    assert encoded_size({"data": {"items": rows[: kept + 1], "next": "c2"}, "ok": True}) > LIMIT


def test_two_long_texts_of_one_object_share_the_room_and_keep_the_small_members() -> None:
    result = bound({"subject": "Hi", "body": "b" * 30_000, "html": "h" * 60_000, "labels": ["a"]}, LIMIT)
    assert isinstance(result.value, dict)
    assert list(result.value) == ["subject", "body", "html", "labels"]
    assert result.value["labels"] == ["a"]
    assert "bytes left out" in str(result.value["body"])
    assert "bytes left out" in str(result.value["html"])
    assert result.dropped == ("/body", "/html")
    assert encoded_size(result.value) > LIMIT * 3 // 4


@pytest.mark.guarantee("B1")
def test_a_long_text_keeps_its_head_and_tail_around_a_note_of_what_is_left_out() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    shown = bound(text, LIMIT).value
    assert isinstance(shown, str)
    head, note, tail = (
        shown.split("\n[... ", 1)[0],
        shown.split("[... ")[1].split(" ...]")[0],
        shown.split(" ...]\n")[1],
    )
    assert text.startswith(head)
    assert text.endswith(tail)
    assert note == f"{len(text) - len(head) - len(tail)} of {len(text)} bytes left out"
    assert 0.55 * LIMIT < encoded_size(head) <= 0.6 * LIMIT + 2
    assert 0.15 * LIMIT < encoded_size(tail) <= 0.2 * LIMIT + 2


@pytest.mark.guarantee("B1")
def test_the_note_counts_bytes_and_names_the_artifact_where_there_is_room() -> None:
    text = "é" * 40_000
    shown = str(bound([text], 1_000, kept_as="0b0e").value)
    left_out = 80_000 - 2 * shown.count("é")
    assert f"[... {left_out} of 80000 bytes left out, kept as artifact 0b0e ...]" in shown
    narrow = str(bound(text, 80, kept_as="artifact-of-a-very-long-name" * 2).value)
    assert "of 80000 bytes left out ..." in narrow


@pytest.mark.guarantee("B1")
def test_twelve_megabytes_of_text_come_back_bounded() -> None:
    result = bound("x" * 12_000_000, LIMIT)
    assert encoded_size(result.value) <= LIMIT
    assert f"of {12_000_000} bytes left out" in str(result.value)


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize("limit", range(600, 640))
@pytest.mark.parametrize(
    "unit",
    ["\U0001f600", "👩‍👩‍👧", "👍🏽", "🇩🇪", "e\u0301", "\r\n", "न\u093f", "\\", '"', "\x01"],
    ids=ascii,
)
def test_a_text_is_never_cut_inside_a_character_or_an_escape(unit: str, limit: int) -> None:
    shown = str(bound(unit * 20_000, limit).value)
    head, tail = shown.split("\n[... ", maxsplit=1)[0], shown.split(" ...]\n")[1]
    assert head == unit * (len(head) // len(unit))
    assert tail == unit * (len(tail) // len(unit))
    assert len(head) > len(tail) > 0


@pytest.mark.parametrize(
    ("value", "limit", "expected"), [("x" * 100, 2, ""), (10**300, 40, ""), (10**300, 60, dropped(301))]
)
def test_a_scalar_too_large_becomes_a_marker_and_under_that_the_empty_text(
    value: JsonValue, limit: int, expected: JsonValue
) -> None:
    assert bound(value, limit).value == expected


@pytest.mark.parametrize(("value", "empty"), [([1, 2, 3], []), ({"a": 1}, {})])
def test_the_smallest_limit_leaves_an_empty_container(value: JsonValue, empty: JsonValue) -> None:
    assert bound(value, 2).value == empty


def test_a_limit_that_no_value_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes is 1"):
        bound(None, 1)


def test_the_list_of_what_was_left_out_is_itself_bounded() -> None:
    result = bound({f"key {number}" * 20: "v" * 50 for number in range(5_000)}, 1_000)
    assert len(result.dropped) == MAX_PATHS + 1
    assert result.dropped[-1].startswith("and ")
    assert all(len(path) < 100 for path in result.dropped)


def test_a_marker_is_told_from_data_that_only_mentions_one() -> None:
    assert is_marker(dropped(5))
    assert not is_marker({"__dropped__": 1})
    assert not is_marker({"__dropped__": {}, "id": 1})
