"""Says in words what a value broke: a path and a rule of the schema, never the value itself (it may be a secret)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import jsonschema_rs

from agentic.contract.encoding import encode

MAX_PROBLEM: Final = 300
_MAX_NAME: Final = 64
_MAX_BRANCHES: Final = 4
_MAX_RULE: Final = 160

_RULES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "additionalItems": lambda d: f"at most {d['limit']} items are allowed",
    "additionalProperties": lambda d: f"unknown {_names(d['unexpected'])}; only declared names are allowed",
    "unevaluatedProperties": lambda d: f"unknown {_names(d['unexpected'])}; only declared names are allowed",
    "const": lambda d: f"must be {_shown(d['expected_value'])}",
    "enum": lambda d: f"must be one of {_shown(d['options'])}",
    "exclusiveMaximum": lambda d: f"must be less than {_shown(d['limit'])}",
    "exclusiveMinimum": lambda d: f"must be greater than {_shown(d['limit'])}",
    "falseSchema": lambda d: "is not allowed here",
    "format": lambda d: f"must have the format {_clip(str(d['format']))}",
    "maxItems": lambda d: f"must have at most {d['limit']} items",
    "maxLength": lambda d: f"must be at most {d['limit']} characters long",
    "maxProperties": lambda d: f"must have at most {d['limit']} members",
    "maximum": lambda d: f"must be at most {_shown(d['limit'])}",
    "minItems": lambda d: f"must have at least {d['limit']} items",
    "minLength": lambda d: f"must be at least {d['limit']} characters long",
    "minProperties": lambda d: f"must have at least {d['limit']} members",
    "minimum": lambda d: f"must be at least {_shown(d['limit'])}",
    "multipleOf": lambda d: f"must be a multiple of {_shown(d['multiple_of'])}",
    "pattern": lambda d: f"must match the pattern {_clip(str(d['pattern']))}",
    "required": lambda d: f"{_name(str(d['property']))} is required",
    "type": lambda d: f"must be of type {' or '.join(sorted(map(str, d['types'])))}",
    "uniqueItems": lambda d: "must not repeat an item",
}


def describe(error: jsonschema_rs.ValidationError) -> str:
    """Return `path: rule` for one validation error, at most 300 characters."""
    rule = _rule(error)
    place = "/".join(_clip(str(step), _MAX_NAME) for step in error.instance_path)
    return _clip(f"{_name(place)}: {rule}" if place else rule, MAX_PROBLEM)


def _rule(error: jsonschema_rs.ValidationError) -> str:
    kind = error.kind
    facts = kind.as_dict()
    if kind.name in ("anyOf", "oneOf") and "context" in facts:
        return _branches(facts["context"], error.instance_path)
    words = _RULES.get(kind.name)
    return words(facts) if words is not None else f"breaks the rule {_clip(kind.name)}"


def _branches(context: Sequence[Sequence[jsonschema_rs.ValidationError]], here: Sequence[str | int]) -> str:
    """What each branch asks for, by the first thing that is wrong in it."""
    wanted: list[str] = []
    for errors in context[:_MAX_BRANCHES]:
        for first in errors[:1]:
            below = "/".join(_clip(str(step), _MAX_NAME) for step in list(first.instance_path)[len(here) :])
            wanted.append(f"{_name(below)}: {_rule(first)}" if below else _rule(first))
    distinct = list(dict.fromkeys(wanted))
    if not distinct:
        return "must match exactly one of its allowed forms"
    return "none of its allowed forms fits (" + "; or ".join(_clip(words) for words in distinct) + ")"


def _names(unexpected: Iterable[object]) -> str:
    names = [_name(_clip(str(name), _MAX_NAME)) for name in unexpected]
    more = len(names) - _MAX_BRANCHES
    return (
        ("name " if len(names) == 1 else "names ")
        + ", ".join(names[:_MAX_BRANCHES])
        + (f" and {more} more" if more > 0 else "")
    )


def _name(text: str) -> str:
    return f"'{text}'"


def _shown(rule_value: Any) -> str:
    try:
        return _clip(encode(rule_value).decode())
    except (ValueError, TypeError):
        return "what the schema says"


def _clip(text: str, limit: int = _MAX_RULE) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
