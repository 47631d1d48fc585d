"""Says in words what a value broke: a path and a rule of the schema, never the value itself (it may be a secret).

Nor a name the schema does not declare: whoever made the value chose it, and a sentence can be a name (B3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import jsonschema_rs

from agentic.contract.encoding import encode
from agentic.services.tools.schema_tree import Schema, subschemas, view

MAX_PROBLEM: Final = 300
_MAX_NAME: Final = 64
_MAX_BRANCHES: Final = 4
_MAX_DECLARED: Final = 10
UNDECLARED: Final = "*"
"""What stands in a path for a name of the value's own."""
_MAX_RULE: Final = 160

_RULES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "additionalItems": lambda d: f"at most {d['limit']} items are allowed",
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


def declared_names(root: Schema) -> frozenset[str]:
    """Every name of a member that `root` itself declares, at whatever depth: the only names that words about a value repeat."""
    names: set[str] = set()
    waiting: list[Any] = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, Mapping):
            names.update(schema["properties"] if isinstance(schema.get("properties"), Mapping) else ())
            waiting.extend(inner for _, inner in subschemas(schema))
    return frozenset(names)


def path_words(path: Iterable[str | int], names: Collection[str]) -> str:
    """A path as `a/0/b`; a step that is neither a number nor one of `names` is `*`."""
    return "/".join(
        _clip(str(step), _MAX_NAME) if isinstance(step, int) or step in names else UNDECLARED for step in path
    )


def describe(error: jsonschema_rs.ValidationError, root: Schema, names: Collection[str]) -> str:
    """Return `path: rule` for one validation error, at most 300 characters.

    Args:
        error: what the validator of `root` found.
        root: the schema the value was judged by.
        names: its `declared_names`.
    """
    rule = _rule(error, root, names)
    place = path_words(error.instance_path, names)
    return _clip(f"{_name(place)}: {rule}" if place else rule, MAX_PROBLEM)


def _rule(error: jsonschema_rs.ValidationError, root: Schema, names: Collection[str]) -> str:
    kind = error.kind
    facts = kind.as_dict()
    if kind.name in ("anyOf", "oneOf") and "context" in facts:
        return _branches(facts["context"], error.instance_path, root, names)
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        return _undeclared(len(facts["unexpected"]), _declared_at(error.schema_path, root))
    words = _RULES.get(kind.name)
    return words(facts) if words is not None else f"breaks the rule {_clip(kind.name)}"


def _branches(
    context: Sequence[Sequence[jsonschema_rs.ValidationError]],
    here: Sequence[str | int],
    root: Schema,
    names: Collection[str],
) -> str:
    """What each branch asks for, by the first thing that is wrong in it."""
    wanted: list[str] = []
    for errors in context[:_MAX_BRANCHES]:
        for first in errors[:1]:
            below = path_words(list(first.instance_path)[len(here) :], names)
            rule = _rule(first, root, names)
            wanted.append(f"{_name(below)}: {rule}" if below else rule)
    distinct = list(dict.fromkeys(wanted))
    if not distinct:
        return "must match exactly one of its allowed forms"
    return "none of its allowed forms fits (" + "; or ".join(_clip(words) for words in distinct) + ")"


def _undeclared(count: int, declared: Sequence[str]) -> str:
    given = "an undeclared name" if count == 1 else f"{count} undeclared names"
    if not declared:
        return f"{given}; none is declared here"
    shown = ", ".join(_name(_clip(name, _MAX_NAME)) for name in declared[:_MAX_DECLARED])
    more = len(declared) - _MAX_DECLARED
    return f"{given}; declared: {shown}" + (f" and {more} more" if more > 0 else "")


def _declared_at(rule: Sequence[str | int], root: Schema) -> list[str]:
    """The names that the object schema declares whose last keyword was broken; none where it cannot be found again."""
    place: Any = root
    for step in list(rule)[:-1]:
        inside = place if isinstance(place, Mapping) else range(len(place)) if isinstance(place, list) else ()
        if step not in inside:
            return []
        place = place[step]
    return [str(name) for name in view(place, root).get("properties", {})]


def _name(text: str) -> str:
    return f"'{text}'"


def _shown(rule_value: Any) -> str:
    try:
        return _clip(encode(rule_value).decode())
    except (ValueError, TypeError):
        return "what the schema says"


def _clip(text: str, limit: int = _MAX_RULE) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
