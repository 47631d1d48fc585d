"""Repairs what models habitually get wrong about arguments, where the schema leaves one reading only.

Each repair happens before validation and before the digest, so the repaired value is the one that is approved and executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentic.contract.encoding import encode
from agentic.contract.json_types import JsonObject, JsonValue
from agentic.services.tools.json_text import JsonTextRefused, parse_json
from agentic.services.tools.schema_tree import Schema, admitted_types, type_of, view

_ABSENT: Final = object()


def repaired(value: JsonObject, root: Schema) -> JsonObject:
    """Return `value` with strings unwrapped, forbidden nulls of optional members left out and defaults filled in.

    - A string is read as JSON once where the schema admits an object or an array, no string, and the text holds one.
    - A null member is left out where it is optional and its schema admits no null.
    - A missing member takes its `default`, where the default itself is of an admitted type.

    Args:
        value: arguments as read; left as it is.
        root: the tool's input schema in Unicode form C.

    Source: ADR 0005.
    """
    return _object(value, view(root, root), root)


def _object(value: JsonObject, schema: Schema, root: Schema) -> JsonObject:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    result: JsonObject = {}
    for name, item in value.items():
        if name not in properties:
            result[name] = item
            continue
        types = admitted_types(properties[name], root)
        if item is None and name not in required and "null" not in types:
            continue
        result[name] = _member(item, types, properties[name], root)
    for name, inner in properties.items():
        if name not in result and isinstance(inner, Mapping) and (default := _default(inner, root)) is not _ABSENT:
            result[name] = default
    return result


def _member(item: JsonValue, types: frozenset[str], schema: Any, root: Schema) -> JsonValue:
    if isinstance(item, str) and "string" not in types:
        item = _unwrapped(item, types)
    if isinstance(item, dict) and (inside := _branch(schema, "object", root)) is not None:
        return _object(item, inside, root)
    if isinstance(item, list) and (inside := _branch(schema, "array", root)) is not None:
        each = inside.get("items")
        if isinstance(each, Mapping):
            admitted = admitted_types(each, root)
            return [_member(entry, admitted, each, root) for entry in item]
    return item


def _unwrapped(text: str, types: frozenset[str]) -> JsonValue:
    if not types & {"object", "array"}:
        return text
    try:
        inner = parse_json(text)
    except JsonTextRefused:
        return text
    return inner if isinstance(inner, dict | list) and type_of(inner) in types else text


def _branch(schema: Any, kind: str, root: Schema) -> Schema | None:
    """The one schema that speaks about a value of this kind; `None` where several branches could, so nothing is guessed."""
    folded = view(schema, root)
    for keyword in ("anyOf", "oneOf"):
        if keyword in folded:
            fitting = [branch for branch in folded[keyword] if kind in admitted_types(branch, root)]
            return _branch(fitting[0], kind, root) if len(fitting) == 1 else None
    return folded


def _default(schema: Schema, root: Schema) -> Any:
    """The default as text would have given it (1.0 is 1), or `_ABSENT` where there is none of an admitted type."""
    folded = view(schema, root)
    if "default" not in folded:
        return _ABSENT
    try:
        default = parse_json(encode(folded["default"]).decode())
    except JsonTextRefused:
        return _ABSENT
    types = admitted_types(schema, root)
    admitted = type_of(default) in types or (type_of(default) == "integer" and "number" in types)
    return default if admitted else _ABSENT
