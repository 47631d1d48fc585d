"""Reads a JSON Schema as a tree: where subschemas stand, what a local `$ref` names, which JSON types a subschema lets in.

Pure, and without opinion on what is allowed; that is `schema_check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from agentic.contract.json_types import JsonValue

Schema = Mapping[str, Any]
ALL_TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_SEVERAL: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose subschemas judge the same value as the schema around them."""
_MAX_HOPS: Final = 64


class SchemaRefused(ValueError):
    """This schema cannot be carried; the message names the rule and the place, for whoever registers the tool."""


def subschemas(schema: Schema) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the direct subschemas of `schema` with the path from it, skipping what only looks like one (enum, const, default)."""
    for keyword in _ONE:
        if isinstance(schema.get(keyword), Mapping | bool):
            yield (keyword,), schema[keyword]
    for keyword in _SEVERAL:
        if isinstance(schema.get(keyword), list):
            for index, inner in enumerate(schema[keyword]):
                yield (keyword, str(index)), inner
    for keyword in _NAMED:
        if isinstance(schema.get(keyword), Mapping):
            for name, inner in schema[keyword].items():
                if isinstance(inner, Mapping | bool):
                    yield (keyword, name), inner


def pointer(path: tuple[str, ...]) -> str:
    """Return `path` as the JSON Pointer a `$ref` is written with, each part cut at 64 characters."""
    return "#" + "".join("/" + part[:64].replace("~", "~0").replace("/", "~1") for part in path)


def resolve(root: Schema, reference: str) -> Any:
    """Return what the local `reference` names in `root`.

    Raises:
        SchemaRefused: it is no local pointer, or nothing stands there.
    """
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        raise SchemaRefused(
            f"$ref {reference[:200]!r} does not point into the schema itself; inline what it names under $defs"
        )
    place: Any = root
    for part in reference[2:].split("/"):
        name = _unescaped(part)
        if isinstance(place, Mapping) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            raise SchemaRefused(f"$ref {reference[:200]!r} points at nothing")
    return place


def view(schema: Any, root: Schema) -> Schema:
    """Return `schema` with its `$ref` and `allOf` folded in: properties and required joined, the nearer keyword first.

    Enough to know what the object's members are; it is not a validator.
    """
    return _view(schema, root, _MAX_HOPS)


def _view(schema: Any, root: Schema, hops: int) -> Schema:
    if not isinstance(schema, Mapping):
        return {} if schema is not False else {"not": {}}
    parts = [inner for inner in schema.get("allOf", ()) if isinstance(inner, Mapping)]
    if isinstance(schema.get("$ref"), str):
        parts.append(resolve(root, schema["$ref"]))
    if not parts or hops == 0:
        return schema
    folded: dict[str, Any] = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
    for part in parts:
        inner = _view(part, root, hops - 1)
        properties = {**inner.get("properties", {}), **folded.get("properties", {})}
        required = [
            *folded.get("required", ()),
            *(n for n in inner.get("required", ()) if n not in folded.get("required", ())),
        ]
        for key, value in inner.items():
            folded.setdefault(key, value)
        if properties:
            folded["properties"] = properties
        if required:
            folded["required"] = required
    return folded


def admitted_types(schema: Any, root: Schema) -> frozenset[str]:
    """Return the JSON types `schema` can let in; a superset where a rule is not about types."""
    return _admitted(schema, root, _MAX_HOPS)


def _admitted(schema: Any, root: Schema, hops: int) -> frozenset[str]:
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping) or hops == 0:
        return ALL_TYPES
    admitted = ALL_TYPES
    declared = schema.get("type")
    if declared is not None:
        admitted &= _with_integer(frozenset([declared] if isinstance(declared, str) else declared))
    if isinstance(schema.get("enum"), list):
        admitted &= _with_integer(frozenset(map(type_of, schema["enum"])))
    if "const" in schema:
        admitted &= _with_integer(frozenset([type_of(schema["const"])]))
    if isinstance(schema.get("$ref"), str):
        admitted &= _admitted(resolve(root, schema["$ref"]), root, hops - 1)
    for inner in schema.get("allOf", ()):
        admitted &= _admitted(inner, root, hops - 1)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            admitted &= frozenset[str]().union(*(_admitted(inner, root, hops - 1) for inner in schema[keyword]))
    return admitted


def type_of(value: JsonValue) -> str:
    """Return the JSON type of `value`; a number without a fraction is an `integer`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return "array" if isinstance(value, list) else "object"


def _with_integer(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
