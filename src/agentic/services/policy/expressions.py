"""The one place that speaks to the CEL library: conditions are compiled against declared names, and their errors are values.

The library hands run-time errors back as values that are true to Python, raises for others, and reads an absent name as an error
even inside ``has()``. Here a condition answers True, False or a `ConditionError`, and nothing else (D4).
"""

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from cel_expr_python import cel  # type: ignore[import-untyped]

FactType = Literal["bool", "number", "string", "json"]
ArgumentType = Literal["bool", "string", "strings", "list", "object", "any"]

_FACTS: Final[Mapping[FactType, cel.Type]] = {
    "bool": cel.Type.BOOL,
    "number": cel.Type.DYN,  # as a double, `f > 1` would not compile
    "string": cel.Type.STRING,
    "json": cel.Type.DYN,
}
_ARGUMENTS: Final[Mapping[ArgumentType, cel.Type]] = {
    "bool": cel.Type.BOOL,
    "string": cel.Type.STRING,
    "strings": cel.Type.List(cel.Type.STRING),
    "list": cel.Type.List(cel.Type.DYN),
    "object": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    "any": cel.Type.DYN,
}
_NAMES: Final[Mapping[str, cel.Type]] = {
    "tool": cel.Type.STRING,
    "side_effects": cel.Type.STRING,
    "risk": cel.Type.STRING,
    "args": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    "origin_trust": cel.Type.STRING,
    "argument_trust": cel.Type.STRING,
    "environment": cel.Type.STRING,
    "principal.user_id": cel.Type.STRING,
    "now": cel.Type.TIMESTAMP,
    "run.kind": cel.Type.STRING,
}
NAMES: Final = tuple(_NAMES)
"""What a condition may name beside ``facts.…``. ``principal.user_id`` is empty for a run that no person started."""
_LARGEST: Final = int(sys.float_info.max)
_ABOVE: Final = math.nextafter(2.0**64, math.inf)
_BELOW: Final = math.nextafter(-(2.0**63), -math.inf)
_FAULT = re.compile(r"ERROR: <input>:(?P<line>-?\d+):(?P<column>-?\d+): (?P<what>.*)")
_CONTAINER = re.compile(r" \(in container '[^']*'\)")
_STATUS = re.compile(r"\s*\[[A-Z_]+\]\s*$|^[A-Z_]+: ")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionError:
    """A condition that did not come to an answer. ``message`` is for whoever maintains the rule; it may quote a value."""

    message: str


class ConditionFault(ValueError):
    """A condition that cannot be compiled; the message says where and what."""


class Bound:
    """The names and values one call offers to conditions; made once a call, because that is what costs."""

    __slots__ = ("activation",)

    def __init__(self, activation: cel.Activation) -> None:
        self.activation = activation


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    expression: cel.Expression

    def answer(self, bound: Bound) -> bool | ConditionError:
        """Whether it holds; an error is a value, never an exception and never true."""
        try:
            value = self.expression.eval(bound.activation)
            if value.type() == cel.Type.BOOL:
                return value.value() is True
            return ConditionError(message=_said(str(value.value())))
        except Exception as error:  # noqa: BLE001 - over budget, a lone surrogate, whatever comes: it is no answer
            return ConditionError(message=_said(str(error)))


class ConditionEnvironment:
    """The names a condition may use for one tool, with their types.

    Args:
        facts: declared facts by name.
        arguments: types of the tool's arguments, for a check that finds wrong comparisons; ``None`` takes them as they come, which
            is how conditions run.
    """

    def __init__(self, facts: Mapping[str, FactType], arguments: Mapping[str, ArgumentType] | None = None) -> None:
        self._facts = facts
        self._env = cel.NewEnv(
            variables={
                **_NAMES,
                **{f"facts.{name}": _FACTS[kind] for name, kind in facts.items()},
                **{f"args.{name}": _ARGUMENTS[kind] for name, kind in (arguments or {}).items()},
            }
        )

    def compile(self, text: str) -> Condition:
        """Compile a condition.

        Raises:
            ConditionFault: a syntax error, an unknown name, a wrong type, or an expression that is not true or false.
        """
        try:
            expression = self._env.compile(text)
            kind = expression.return_type()
        except RuntimeError as error:
            raise ConditionFault(_fault(str(error), self._facts)) from error
        except (TypeError, UnicodeEncodeError) as error:
            raise ConditionFault("it holds half a surrogate pair, which is no text") from error
        if kind != cel.Type.BOOL:
            raise ConditionFault(
                f"it gives {_article(kind.name())}, not true or false; compare it with something, such as args.urgent == true"
            )
        return Condition(expression)

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Offer values by name. JSON data only, ``now`` as an aware datetime; a name left out is an error where it is used.

        A value that is no JSON makes every use of the name it stands in an error, of its siblings too.
        """
        return Bound(self._env.Activation({name: _carried(value) for name, value in values.items()}))


@lru_cache(maxsize=512)
def environment(facts: tuple[tuple[str, FactType], ...]) -> ConditionEnvironment:
    """The environment conditions run in, by declared facts; kept, because making one costs more than asking."""
    return ConditionEnvironment(dict(facts))


@lru_cache(maxsize=8192)
def compiled(text: str, facts: tuple[tuple[str, FactType], ...]) -> Condition | ConditionError:
    """The condition as it runs; one that no longer compiles, because its tool changed, is an error value."""
    try:
        return environment(facts).compile(text)
    except ConditionFault as fault:
        return ConditionError(message=str(fault))


def valid_pattern(literal: str) -> str | None:
    """Why a string literal of a condition is no regular expression; ``None`` when it is one. Unasked, it would fail at the call."""
    environment_ = environment(())
    try:
        answer = environment_.compile(f'"".matches({literal})').answer(environment_.bind({}))
    except ConditionFault as fault:
        return str(fault)
    return answer.message if isinstance(answer, ConditionError) else None


def _carried(value: Any) -> Any:
    """A value the library can carry: a whole number beyond 64 bits as a double near it, in the same order to any literal."""
    match value:
        case bool():
            return value
        case int() if value >= 2**64:
            return max(_ABOVE, float(min(value, _LARGEST)))
        case int() if value < -(2**63):
            return min(_BELOW, float(max(value, -_LARGEST)))
        case list():
            return [_carried(item) for item in value]
        case dict():
            return {key: _carried(item) for key, item in value.items()}
        case _:
            return value


def _fault(text: str, facts: Mapping[str, FactType]) -> str:
    faults = [_CONTAINER.sub("", found["what"]).strip() for found in _FAULT.finditer(text)]
    where = [(int(found["line"]), int(found["column"])) for found in _FAULT.finditer(text)]
    if not faults:
        return _said(text)
    said = "; ".join(
        dict.fromkeys(
            f"line {line}, column {column}: {what}" if line > 0 else what
            for (line, column), what in zip(where, faults, strict=True)
        )
    )
    if "undeclared reference" not in said:
        return said
    known = ", ".join([*NAMES, *(f"facts.{name}" for name in sorted(facts))])
    return f"{said}; known here: {known}"


def _said(text: str) -> str:
    return _STATUS.sub("", _STATUS.sub("", " ".join(text.split())))[:300] or "no more is known"


def _article(kind: str) -> str:
    words = {"DYN": "a value of unknown type", "STRING": "a string", "INT": "a number", "DOUBLE": "a number"}
    return words.get(kind, f"a value of type {kind.lower()}")
