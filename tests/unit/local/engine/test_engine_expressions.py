"""What the match and key expressions of declarations mean."""

from typing import Any

import pytest

from agentic.local.engine.errors import ExpressionError
from agentic.local.engine.expressions import key_of, matches, number_of

SCOPE: dict[str, Any] = {
    "event": {"name": "order.placed", "data": {"id": "o-1", "n": 3, "vip": True, "lines": [{"sku": "a b"}], "x y": 1}},
    "async": {"name": "order.paid", "data": {"id": "o-1", "n": 3.0, "vip": 1}},
}


@pytest.mark.parametrize(
    "expression",
    [
        "event.data.id == async.data.id",
        "event.data.id == 'o-1' && async.name == \"order.paid\"",
        "event.data.n == async.data.n",
        "event.data.n >= 3 && event.data.n < 4 && event.data.n > -1",
        "event.data.vip",
        "!(event.data.n == 4) || event.data.nothing == 1",
        "event.data.nothing == 1 || event.data.vip == true",
        "event.data.lines[0].sku == 'a b'",
        "event.data['x y'] == 1",
        "event.data.id + '/' + event.name == 'o-1/order.placed'",
        "event.data.n != 'three'",
        r"'it\'s' == 'it\'s' || true",
        "has(event.data.vip) && !has(event.data.nothing)",
        "event.data.id in ['o-1', 'o-2']",
        "event.data.lines.exists(line, line.sku.startsWith('a'))",
        "(event.data.vip ? 1 : 2) == 1",
    ],
)
def test_an_expression_that_holds_matches(expression: str) -> None:
    assert matches(expression, SCOPE)


@pytest.mark.parametrize(
    "expression",
    [
        "event.data.id == 'o-2'",
        "event.data.vip == async.data.vip",  # true is not 1
        "event.data.n == '3'",
        "event.data.nothing == async.data.nothing",  # two absent fields are not one value
        "event.data.nothing != 1",
        "event.data.lines[5].sku == 'a b'",
        "event.data.id < 4",
        "event.data.id",  # text is no truth value
        "false",
    ],
)
def test_an_expression_that_does_not_hold_or_has_no_value_does_not_match(expression: str) -> None:
    assert not matches(expression, SCOPE)


@pytest.mark.parametrize("value", ["it's", 'say "so"'])
def test_a_value_with_quotes_never_matches_between_events_as_on_the_real_server(value: str) -> None:
    event = {"data": {"k": value}}
    for path in ("event.data.k", "event.data['k']", 'event["data"].k', "event.data.list[1]"):
        seen = {"event": {"data": {**event["data"], "list": ["", value]}}, "async": event}
        assert not matches(f"{path} == async.data.k", seen)
    assert matches("event.data.k == async.data.k", {"event": {"data": {"k": "it"}}, "async": {"data": {"k": "it"}}})


@pytest.mark.parametrize(
    "expression",
    ["", "event.data.id ==", "event.data.id = 1", "(event.data.n", "event.", "foo.bar == 1", "nope(event.data)", "1 2"],
)
def test_what_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionError, match="cannot read the expression"):
        matches(expression, SCOPE)


def test_a_key_is_text_that_tells_values_apart() -> None:
    values: list[Any] = ["1", 1, 1.5, True, None, "true", [1], {"a": 1}]
    keys = [key_of("event.data.k", {"event": {"data": {"k": value}}}) for value in values]
    assert len(set(keys)) == len(values)
    assert key_of("event.data.k", {"event": {"data": {}}}) == key_of("null", {})
    assert key_of("event.data.a + '-' + event.data.b", {"event": {"data": {"a": "x", "b": "y"}}}) == '"x-y"'


def test_values_that_the_library_cannot_carry_leave_the_others_readable() -> None:
    event = {"data": {"huge": 2**70, "small": -(2**70), "half": "\ud800", "id": "o-1"}}
    assert matches("event.data.id == 'o-1' && event.data.huge > 5 && event.data.small < 5", {"event": event})
    assert key_of("event.data.half", {"event": event}) == key_of("'\ufffd'", {})


def test_a_number_is_whole_or_it_is_none() -> None:
    lane = "event.data.lane == 'interactive' ? 120 : 0"
    assert number_of(lane, {"event": {"data": {"lane": "interactive"}}}) == 120
    assert number_of(lane, {"event": {"data": {"lane": "batch"}}}) == 0
    for expression in ("'120'", "1.5", "true", "event.data.nothing"):
        assert number_of(expression, {"event": {"data": {}}}) is None
