"""Turns the raw text of a model's call into the one value that is validated, digested, shown, approved and executed.

Frameworks rewrite arguments on their way (they take Python literals for JSON and the string "null" for nothing), so the text of
the assistant message is parsed here and nowhere else. Reading the text is `json_text`, repairing what models habitually get wrong is
`argument_repairs`, the rules are the tool's own schema through `schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentic.contract.json_types import JsonObject, JsonValue
from agentic.services.tools.argument_repairs import repaired
from agentic.services.tools.json_text import MAX_BYTES, MAX_DEPTH, JsonTextRefused, parse_json
from agentic.services.tools.schema_tree import view
from agentic.services.tools.schemas import SchemaValidator, validator_for

__all__ = ["MAX_BYTES", "MAX_DEPTH", "InvalidArguments", "parse_arguments", "read_arguments"]

MAX_MESSAGE: Final = 1_000


class InvalidArguments(ValueError):
    """The call cannot be read or breaks the tool's schema. The message is for the model: path and rule, never a value."""

    def __init__(self, problem: str) -> None:
        """Keep `problem` as the message, at most 1,000 characters."""
        super().__init__(problem if len(problem) <= MAX_MESSAGE else problem[: MAX_MESSAGE - 3] + "...")


def parse_arguments(text: str | None, schema: Mapping[str, Any]) -> JsonObject:
    """Return the arguments `text` stands for, complete and valid under `schema`.

    Nothing, blank text, `null` and `[]` mean no arguments where the tool requires none. A string that holds the object or
    array asked for is unwrapped once, at the top and for each property. An optional property that is null and may not be
    is left out; a property that is absent takes its default. Text is in Unicode form C.

    Args:
        text: the arguments as the model wrote them.
        schema: the tool's input schema; where it is silent, members it does not declare are refused.

    Raises:
        InvalidArguments: the text is not one clean JSON object, or it breaks the schema.
        SchemaRefused: `schema` cannot be compiled; registration lets none through.

    Source: N2, T2, ADR 0005.
    """
    validator = validator_for(schema)
    value = read_arguments(text)
    if value is None or value == []:
        if required := view(validator.schema, validator.schema).get("required"):
            raise InvalidArguments(f"no arguments were given, but {_listed(required)} required")
        value = {}
    if not isinstance(value, dict):
        raise InvalidArguments("the arguments must be one JSON object")
    arguments = repaired(value, validator.schema)
    _validate(arguments, validator)
    return arguments


def read_arguments(text: str | None) -> JsonValue:
    """Return the value `text` holds, before any schema: `None` for nothing, and what a doubly encoded call holds.

    Raises:
        InvalidArguments: the text is not one JSON value.
    """
    value = _read(text)
    return _unwrapped(value) if isinstance(value, str) else value


def _read(text: str | None) -> JsonValue:
    if text is None:
        return None
    if not isinstance(text, str):
        # A framework may hand over its own parsed copy; it is not the model's text.
        raise InvalidArguments("the arguments must be JSON text")
    try:
        return None if len(text) <= MAX_BYTES and not text.strip() else parse_json(text)
    except JsonTextRefused as refused:
        raise InvalidArguments(f"the arguments cannot be read: {refused}") from None


def _unwrapped(text: str) -> JsonValue:
    """What a doubly encoded call holds; anything but an object or nothing stays the string it is, and is refused."""
    try:
        inner = parse_json(text) if text.strip() else None
    except JsonTextRefused:
        return text
    return inner if inner is None or isinstance(inner, dict | list) else text


def _validate(arguments: JsonObject, validator: SchemaValidator) -> None:
    if too_deep(arguments, MAX_DEPTH):
        raise InvalidArguments(f"the arguments are nested more than {MAX_DEPTH} deep")
    if problems := validator.problems(arguments):
        raise InvalidArguments("; ".join(problems))


def too_deep(value: JsonValue, limit: int) -> bool:
    """Say whether `value` has more than `limit` containers inside each other."""
    level: list[JsonValue] = [value]
    for _ in range(limit + 1):
        containers = [place for place in level if isinstance(place, dict | list)]
        if not containers:
            return False
        level = [item for place in containers for item in (place.values() if isinstance(place, dict) else place)]
    return True


def _listed(required: list[str]) -> str:
    names = ", ".join(f"'{name[:64]}'" for name in required[:10])
    return f"{names} {'is' if len(required) == 1 else 'are'}"
