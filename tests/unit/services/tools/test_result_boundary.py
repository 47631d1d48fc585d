"""What a handler answered, as a model may read it."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr

from agentic.contract.encoding import encode, encoded_size
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import plain
from agentic.services.tools.redaction import redact, redact_text, secret_values
from agentic.services.tools.result_boundary import BoundaryLimits, apply_boundary, said_text, strip_controls

SECRET = "tok_live_0123456789"
texts = st.text(st.characters(exclude_categories=["Cs"]))
documents: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


def bounded(value: object, *, secrets: tuple[str, ...] = (), untrusted: bool = False, **limits: Any) -> Any:
    return apply_boundary(value, spec_limits=BoundaryLimits(**limits), secrets=secrets, untrusted=untrusted)


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize(
    "key",
    [
        "token",
        "Token",
        "api_key",
        "apiKey",
        "API-KEY",
        "X-Api-Key",
        "secret",
        "password",
        "Authorization",
        "accessToken",
        "refresh_token",
        "client-secret",
        "Cookie",
        "Set-Cookie",
        "stripe_secret_key",
        "db_password",
        "webhookSecret",
    ],
)
def test_what_stands_under_the_name_of_a_credential_is_removed_at_any_depth(key: str) -> None:
    value: JsonValue = {"rows": [{"id": 1, key: "anything"}, {key: {"nested": ["anything"]}}], "n": 2}
    assert redact(value) == {"rows": [{"id": 1, key: "[redacted]"}, {key: "[redacted]"}], "n": 2}


@pytest.mark.parametrize(
    "key", ["page_token", "next_page_token", "token_count", "tokens", "secretary", "keyword", "has_password_reset"]
)
def test_a_field_that_only_sounds_like_a_credential_stays(key: str) -> None:
    assert redact({key: "kept"}) == {key: "kept"}


def test_a_flag_or_nothing_under_the_name_of_a_credential_stays() -> None:
    assert redact({"password": None, "secret": True, "token": 12}) == {
        "password": None,
        "secret": True,
        "token": "[redacted]",
    }


def test_a_header_written_as_name_and_value_is_a_field_too() -> None:
    headers: JsonValue = [{"name": "Authorization", "value": "Bearer abc"}, {"name": "Accept", "value": "text/html"}]
    assert redact(headers) == [
        {"name": "Authorization", "value": "[redacted]"},
        {"name": "Accept", "value": "text/html"},
    ]


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize(
    "hidden",
    [
        SECRET,
        f"GET https://api.test/v1?key={SECRET}",
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(f"ab{SECRET}>>>".encode()).decode(),
        base64.b64encode(f"x{SECRET}yz".encode()).decode(),
    ],
)
def test_a_secret_of_this_call_is_removed_from_any_string_and_key(hidden: str) -> None:
    shown = encode(redact({"a": [hidden], f"k{hidden}": 1}, [SECRET])).decode()
    assert SECRET not in shown
    assert base64.b64encode(SECRET.encode()).decode()[:20] not in shown
    assert "0123456789" not in shown
    assert shown.count("[redacted]") == 2


def test_a_secret_with_odd_characters_is_found_percent_encoded_and_json_escaped() -> None:
    secret = 'p/ä"s s+1\n'
    for form in (
        quote(secret, safe=""),
        quote(secret).lower(),
        quote(quote(secret, safe=""), safe=""),
        json.dumps(secret)[1:-1],
    ):
        assert redact([f"<{form}>"], [secret]) == ["<[redacted]>"]


class _Unreadable:
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.guarantee("B2", "J4")
@pytest.mark.parametrize(
    "named",
    [
        SECRET,
        (SECRET,),
        [SECRET.encode()],
        (SecretStr(SECRET),),
        SecretBytes(SECRET.encode()),
        (None, _Unreadable(), SECRET),
    ],
    ids=["one text", "several", "bytes", "wrapped text", "wrapped bytes", "among what is none"],
)
def test_a_secret_is_known_in_whatever_form_a_handler_names_it(named: object) -> None:
    assert secret_values(named) == (SECRET,)


@pytest.mark.guarantee("B2")
def test_a_secret_split_over_a_nested_list_is_removed() -> None:
    value: JsonValue = ["before", ["tok_live", ["_01234"]], "56789", "after"]
    assert redact(value, [SECRET]) == ["before", ["[redacted]", ["[redacted]"]], "[redacted]", "after"]


def test_a_number_that_is_the_secret_is_removed() -> None:
    assert redact({"pin": 1234567890}, ["1234567890"]) == {"pin": "[redacted]"}


def test_a_secret_too_short_to_be_told_from_text_is_ignored() -> None:
    assert redact({"a": "the cat"}, ["cat", ""]) == {"a": "the cat"}


@pytest.mark.guarantee("B2")
@given(documents, st.lists(texts.filter(lambda t: len(t) >= 6), min_size=1, max_size=3), texts)
def test_no_string_of_a_redacted_value_contains_a_secret(value: JsonValue, secrets: list[str], around: str) -> None:
    planted: JsonValue = {"v": value, "s": [around + secrets[0] + around], secrets[-1]: 1, "twice": secrets[0] * 2}
    for text in strings(redact(planted, secrets)):
        assert not any(secret in text for secret in secrets)


@pytest.mark.parametrize("secret", ["redacted", "[redacted]", "a[redacted]b", "dacted]["])
def test_a_secret_made_of_the_mask_does_not_come_back_with_it(secret: str) -> None:
    for text in ("x" + secret, "a" + secret + "b", secret * 3):
        assert secret not in str(redact(text, [secret, "zzzzzz"]))


@given(documents)
def test_redaction_leaves_its_argument_as_it_was(value: JsonValue) -> None:
    before = encode(value)
    redact({"password": value, "x": value}, ["secret-value"])
    assert encode(value) == before


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"GET https://api.test/v1?key={SECRET}&q=1", "GET https://api.test/v1?key=[redacted]&q=1"),
        ("POST /t?api_key=abc123&q=1", "POST /t?api_key=[redacted]&q=1"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ('{"client_secret": "abc"}', '{"client_secret": "[redacted]"}'),
        ("env DB_PASSWORD=hunter2 PATH=/bin", "env DB_PASSWORD=[redacted] PATH=/bin"),
        ("cannot reach postgresql://app:pw@db.test/x", "cannot reach postgresql://[redacted]@db.test/x"),
        ("cannot reach postgresql://app:p@w@db.test/x?q=a@b", "cannot reach postgresql://[redacted]@db.test/x?q=a@b"),
        ("password: 'open the door' was wrong", "password: '[redacted]' was wrong"),
        ('body "{\\"api_key\\": \\"abc 123\\", \\"q\\": 1}"', 'body "{\\"api_key\\": \\"[redacted]\\", \\"q\\": 1}"'),
        ("Cookie: a=b; c=d\nAccept: text/html", "Cookie: [redacted]\nAccept: text/html"),
        ('{"set-cookie": "sid=1; Path=/", "q": 1}', '{"set-cookie": "[redacted]", "q": 1}'),
        ("the password was wrong", "the password was wrong"),
    ],
)
def test_an_error_text_loses_its_credentials_and_keeps_the_rest(text: str, expected: str) -> None:
    assert redact_text(text, [SECRET]) == expected


def test_a_hostile_error_text_of_megabytes_is_cleaned_in_bounded_time() -> None:
    assert len(redact_text("a-a_" * 500_000 + "a.a" * 100_000, [SECRET])) == 2_300_000


def test_control_characters_are_stripped_and_line_ends_stay() -> None:
    assert strip_controls("a\tb\r\nc\x07\x1b[31mred\x1b[0m\x9b\u202egnp.exe\U000e0041\x7f") == "a\tb\r\ncredgnp.exe"
    assert strip_controls({"a\x07": 1, "a": 2}) == {"a": 1, "a (2)": 2}
    assert strip_controls("👩\u200d👧 नि") == "👩\u200d👧 नि"


@pytest.mark.guarantee("B3")
def test_unicodes_own_line_ends_become_line_feeds_which_json_escapes() -> None:
    assert strip_controls({"a\u2028b": "c\r\u2029d\u2028"}) == {"a\nb": "c\nd\n"}
    assert len(encode(strip_controls("a\u2028b\u2029c\x85d")).decode().splitlines()) == 1


@pytest.mark.guarantee("B2")
@pytest.mark.guarantee("B3")
def test_what_others_say_loses_controls_secrets_and_everything_beyond_two_thousand_characters() -> None:
    said = said_text(f"\x1b[31mGET /x?k={SECRET}\u2028\0 tok_live\x07_0123456789\ud800" + "y" * 9_000, (SECRET,))
    assert said.startswith("GET /x?k=[redacted]\n\u2400 [redacted]\ufffdyyy")
    assert len(said) == 2_000


@pytest.mark.guarantee("B2")
@pytest.mark.parametrize("before", [65_530, 65_536 - len(SECRET) // 2, 65_536 - 1])
@pytest.mark.parametrize("shrinks", ["\x07", ""], ids=["what is removed", "nothing"])
def test_of_megabytes_that_others_say_no_more_is_read_than_is_shown_and_no_half_of_a_secret_is(
    before: int, shrinks: str
) -> None:
    filler = (shrinks * (before - 10) + "w" * 10) if shrinks else "w" * before
    said = said_text(filler + SECRET + "z" * 6_000_000, (SECRET,))
    assert "z" not in said
    assert SECRET[:3] not in said
    assert len(said) <= 2_000


def test_a_secret_cut_by_a_control_character_is_still_found() -> None:
    assert bounded("tok_live\x07_0123456789", secrets=(SECRET,)).data == "[redacted]"


@pytest.mark.guarantee("J4")
@pytest.mark.guarantee("B1")
@given(documents, st.integers(2, 500))
def test_any_answer_comes_back_within_the_limit_and_says_whether_it_is_whole(value: JsonValue, limit: int) -> None:
    result = bounded(value, max_output_bytes=limit)
    assert encoded_size(result.data) <= limit
    assert result.truncated is (encoded_size(redact(strip_controls(plain(value)))) > limit)


def test_the_item_bound_comes_before_the_byte_bound_and_the_count_is_what_remains() -> None:
    rows = [{"id": number, "text": "x" * 1_000} for number in range(50)]
    result = bounded(rows, max_results=40, max_output_bytes=8_192)
    assert result.data == rows[:8]
    assert (result.count, result.truncated) == (8, True)
    assert result.dropped == ("/8-39", "/40-49")
    few = bounded(rows, max_results=3)
    assert (few.data, few.count, few.truncated) == (rows[:3], 3, True)


def test_an_answer_that_is_no_array_has_no_count_and_no_item_bound() -> None:
    result = bounded({"a": [1, 2, 3]}, max_results=1)
    assert (result.data, result.count, result.truncated, result.captured) == ({"a": [1, 2, 3]}, None, False, None)


def test_a_marker_names_its_row_and_keeps_reason_and_size() -> None:
    rows = [{"id": "p-1"}, {"id": "p-2", "notes": "n" * 40_000}]
    expected = {"__dropped__": {"reason": "too_large", "bytes": 40_023, "ref": {"kind": "crm.person", "id": "p-2"}}}
    assert bounded(rows, item_kind="crm.person").data == [{"id": "p-1"}, expected]
    assert bounded({"people": rows, "n": 2}, item_kind="crm.person").data["people"][1] == expected
    assert bounded({"p-2": rows[1], "n": 2}, item_kind="crm.person").data == {"p-2": expected, "n": 2}


def test_a_marker_stays_nameless_without_a_kind_or_an_id() -> None:
    big = {"notes": "n" * 40_000}
    for value, kind in (([{"id": 1, **big}], None), ([big], "crm.person"), ([{"id": None, **big}], "crm.person")):
        assert bounded(value, item_kind=kind).data[0].keys() == {"__dropped__"}
        assert "ref" not in bounded(value, item_kind=kind).data[0]["__dropped__"]


def test_data_that_looks_like_a_marker_is_given_no_name() -> None:
    fake = {"__dropped__": {"reason": "mine"}, "id": "p-9"}
    rows = [fake, {"id": "p-2", "notes": "n" * 40_000}]
    assert bounded(rows, item_kind="crm.person").data[0] == fake


@pytest.mark.guarantee("B1")
def test_naming_four_hundred_rows_does_not_push_the_answer_over_the_limit() -> None:
    rows = [{"id": f"person-{number}", "notes": "n" * 33_000} for number in range(400)]
    result = bounded(rows, item_kind="crm.person")
    assert encoded_size(result.data) <= 32_768
    assert all("ref" in row["__dropped__"] for row in result.data)
    assert result.count == len(result.data) < 400


@pytest.mark.guarantee("B2")
def test_a_credential_in_an_item_that_is_left_out_is_not_kept_either() -> None:
    result = bounded([{"id": 1, "password": "hunter22", "notes": SECRET + "n" * 40_000}], secrets=(SECRET,))
    assert result.captured is not None
    assert b"hunter22" not in result.captured
    assert SECRET.encode() not in result.captured
    assert b"n" * 40_000 in result.captured
    assert result.complete


def test_what_is_captured_of_an_endless_answer_is_four_times_the_limit() -> None:
    result = bounded("x" * 12_000_000)
    assert result.truncated
    assert 100_000 < len(result.captured) <= 4 * 32_768
    assert not result.complete


@pytest.mark.guarantee("J4")
def test_an_answer_that_json_cannot_take_is_still_an_answer() -> None:
    result = bounded({"sum": float("nan"), "err": ValueError(SECRET), "tags": {"b", "a"}}, secrets=(SECRET,))
    assert result.data == {"sum": "NaN", "err": "<unrenderable ValueError>", "tags": ["a", "b"]}
    assert not result.truncated


@pytest.mark.guarantee("B4")
def test_the_same_answer_renders_the_same_bytes_again() -> None:
    value = {"at": {"b", "c", "a"}, "rows": [{"id": 1, "t": "é" * 50_000}] * 3}
    assert encode(bounded(value).data) == encode(bounded(value).data)


@pytest.mark.parametrize("limits", [{"max_output_bytes": 1}, {"max_output_bytes": 32_769}, {"max_results": 0}])
def test_a_limit_outside_its_range_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        BoundaryLimits(**limits)


def strings(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *strings(item))]
    return []
