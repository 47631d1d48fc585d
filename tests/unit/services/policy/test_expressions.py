"""What the CEL library was measured to do, and what this project makes of it."""

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from cel_expr_python import cel  # type: ignore[import-untyped]

from agentic.services.policy.expressions import (
    ConditionEnvironment,
    ConditionError,
    ConditionFault,
    FactType,
    environment,
    valid_pattern,
)

FACTS: tuple[tuple[str, FactType], ...] = (("count", "number"), ("is_new", "bool"))
VALUES: dict[str, Any] = {
    "tool": "email.send",
    "side_effects": "send",
    "risk": "high",
    "args": {"to": "ada@fjord.example", "n": 3, "l": [1, 2], "none": None},
    "origin_trust": "user",
    "argument_trust": "external",
    "environment": "live",
    "principal.user_id": "",
    "now": datetime(2026, 1, 5, 9, tzinfo=UTC),
    "run.kind": "agent",
    "facts.count": 3,
    "facts.is_new": True,
}


def answer(condition: str, **values: Any) -> bool | ConditionError:
    env = environment(FACTS)
    return env.compile(condition).answer(env.bind({**VALUES, **values}))


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in VALUES.items() if key != name}


@pytest.mark.parametrize(
    "condition",
    [
        "tool == 'email.send' && side_effects == 'send' && risk == 'high'",
        "args.to.endsWith('@fjord.example') && size(args.l) == 2",
        "facts.is_new && facts.count > 2 && facts.count > 2.5",
        "origin_trust == 'user' && argument_trust == 'external'",
        "origin_trust == 'user' && environment == 'live' && run.kind == 'agent' && principal.user_id == ''",
        "now.getHours('Europe/Berlin') == 10 && now.getDayOfWeek('UTC') == 1",
        "!has(args.cc)",
        "args.none == null",
        "args.n == 3.0",
    ],
)
def test_a_condition_reads_what_it_may_name(condition: str) -> None:
    assert answer(condition) is True


@pytest.mark.guarantee("D4")
@pytest.mark.parametrize(
    "condition",
    [
        "args.cc == 'x'",
        "args.n.size() > 1",
        "args.l[7] > 1",
        "args.n / (args.n - 3) > 1",
        "args.to.matches('(' + args.to)",
        "int(args.to) > 1",
    ],
)
def test_a_condition_that_fails_is_an_error_and_never_true(condition: str) -> None:
    assert isinstance(answer(condition), ConditionError)


@pytest.mark.guarantee("D4")
def test_the_library_hands_errors_back_as_values_that_python_takes_for_true() -> None:
    """The trap this module exists for: were it gone, the error test above would be about nothing."""
    env = cel.NewEnv(variables={"args": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)})
    value = env.compile("args.cc == 'x'").eval(env.Activation({"args": {}}))
    assert value.type() == cel.Type.ERROR
    assert bool(value.value()) is True


@pytest.mark.guarantee("D4")
def test_a_declared_name_without_a_value_is_an_error_wherever_it_decides() -> None:
    env = environment(FACTS)
    bound = env.bind(without("facts.is_new"))
    assert isinstance(env.compile("facts.is_new").answer(bound), ConditionError)
    assert isinstance(env.compile("tool == 'email.send' && facts.is_new").answer(bound), ConditionError)
    assert env.compile("tool == 'other' && facts.is_new").answer(bound) is False  # it decides nothing here
    assert env.compile("facts.is_new || tool == 'email.send'").answer(bound) is True


@pytest.mark.guarantee("D4")
@pytest.mark.parametrize("value", [Decimal(7), "\ud800", {1, 2}, datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_value_that_is_no_json_is_an_error_wherever_its_name_is_used(value: Any) -> None:
    args = {"v": value, "w": 1}
    assert isinstance(answer("args.v == 1", args=args), ConditionError)
    assert isinstance(answer("args.w == 1", args=args), ConditionError)
    assert answer("tool == 'email.send'", args=args) is True


@pytest.mark.guarantee("D4")
@pytest.mark.parametrize("value", [2**64, 2**64 + 1, 10**30, 10**400])
def test_a_whole_number_beyond_64_bits_keeps_its_order_and_spoils_nothing_beside_it(value: int) -> None:
    args = {"v": value, "w": 1, "deep": {"l": [-value]}}
    assert answer("args.v > 9223372036854775807", args=args) is True
    assert answer("args.v > 18446744073709551615u", args=args) is True
    assert answer("args.deep.l[0] < -9223372036854775807", args=args) is True
    assert answer("args.v < 1000 || args.v == 1000", args=args) is False
    assert answer("args.w == 1", args=args) is True


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1])
def test_whole_numbers_of_64_bits_compare_exactly(value: int) -> None:
    assert answer("args.v > 9007199254740993", args={"v": value}) is True
    assert answer("args.v == 9007199254740993", args={"v": 2**53}) is False


@pytest.mark.guarantee("D4")
def test_a_condition_that_runs_away_is_stopped_and_is_an_error() -> None:
    started = time.monotonic()
    said = answer("args.l.all(x, args.l.all(y, args.l.all(z, x + y + z >= 0)))", args={"l": list(range(300))})
    assert isinstance(said, ConditionError)
    assert "budget" in said.message
    assert time.monotonic() - started < 5


def test_a_pattern_that_would_backtrack_for_ever_answers_at_once() -> None:
    started = time.monotonic()
    assert answer("args.to.matches('(a+)+$')", args={"to": "a" * 50_000 + "b"}) is False
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("facts.is_nw", "undeclared reference to 'facts.is_nw'; known here: .*facts.is_new"),
        ("tool > 1", "column 6: found no matching overload for '_>_' applied to '\\(string, int\\)'"),
        ("facts.is_new > 1", "no matching overload"),
        ("tool ==", "Syntax error"),
        ("args.to", "it gives a value of unknown type, not true or false"),
        ("args.n + 1", "it gives a number, not true or false"),
        ("fetch(args.to)", "undeclared reference to 'fetch'"),
        ("tool == '\ud800'", "surrogate pair"),
        ("(" * 400 + "true" + ")" * 400, "recursion"),
        (" + ".join(["1"] * 900) + " > 1", "recursion"),
    ],
)
def test_a_condition_that_cannot_run_is_refused_in_words(condition: str, words: str) -> None:
    with pytest.raises(ConditionFault, match=words):
        environment(FACTS).compile(condition)


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ("args.to > 5", False),
        ("args.tags.exists(t, t == 1)", False),
        ("args.tags.exists(t, t == 'vip')", True),
        ("args.urgent && args.n > 1.5", True),
        ("args.urgent == 'yes'", False),
        ("args.person.email == 'x'", True),
    ],
)
def test_with_the_types_of_arguments_a_wrong_comparison_does_not_compile(condition: str, fits: bool) -> None:
    env = ConditionEnvironment(
        {}, {"to": "string", "tags": "strings", "urgent": "bool", "n": "any", "person": "object"}
    )
    if fits:
        env.compile(condition)
    else:
        with pytest.raises(ConditionFault, match="no matching overload"):
            env.compile(condition)


def test_a_broken_regular_expression_is_found_before_it_runs() -> None:
    assert valid_pattern("'^a+$'") is None
    assert "missing )" in (valid_pattern("'('") or "")
