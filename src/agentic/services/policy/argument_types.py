"""What a tool's input schema says about its arguments, as far as a condition's check needs it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentic.services.policy.expressions import ArgumentType
from agentic.services.tools.schema_tree import admitted_types, view


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentTypes:
    """The arguments of one tool.

    Attributes:
        types: by name; ``any`` where the schema leaves it open, or admits null or numbers (a comparison of numbers takes both kinds).
        always: arguments that every call has: required ones and those with a default.
        closed: whether no other argument can occur.
    """

    types: Mapping[str, ArgumentType]
    always: frozenset[str]
    closed: bool


def argument_types(schema: Mapping[str, Any]) -> ArgumentTypes:
    """Read a tool's input schema; registration has checked it."""
    top = view(schema, schema)
    properties: Mapping[str, Any] = top.get("properties", {})
    defaulted = {name for name, inner in properties.items() if "default" in view(inner, schema)}
    open_ = any(top.get(word) not in (None, False) for word in ("additionalProperties", "patternProperties"))
    return ArgumentTypes(
        types={name: _type(inner, schema) for name, inner in properties.items()},
        always=frozenset({*top.get("required", ()), *defaulted}),
        closed=not open_,
    )


def sample_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of about the right shape, every one present, to try a condition on."""
    top = view(schema, schema)
    return {name: _sample(inner, schema) for name, inner in top.get("properties", {}).items()}


def _type(inner: Any, root: Mapping[str, Any]) -> ArgumentType:
    match sorted(admitted_types(inner, root)):
        case ["boolean"]:
            return "bool"
        case ["string"]:
            return "string"
        case ["array"]:
            items = view(inner, root).get("items")
            return "strings" if isinstance(items, Mapping) and admitted_types(items, root) == {"string"} else "list"
        case ["object"]:
            return "object"
        case _:
            return "any"


def _sample(inner: Any, root: Mapping[str, Any]) -> Any:
    folded = view(inner, root)
    for given in (folded.get("enum"), folded.get("examples")):
        if isinstance(given, list) and given:
            return given[0]
    if "const" in folded or "default" in folded:
        return folded.get("const", folded.get("default"))
    types = admitted_types(inner, root)
    samples = (("string", "text"), ("integer", 1), ("number", 1.5), ("boolean", True))
    for kind, value in samples:
        if kind in types:
            return value
    if "array" in types:
        items = folded.get("items")
        return [_sample(items, root)] if isinstance(items, Mapping) else []
    return {}
