"""Makes the schema a model is shown: what every provider takes, next to the original that still validates.

Providers refuse a root that is no object, has no `properties`, or carries a combinator; one such tool would fail every
request of the agent.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from agentic.services.tools.schema_tree import Schema, SchemaRefused, admitted_types, resolve, subschemas, view

_NOT_AT_ROOT: Final = frozenset(
    (
        *("$schema", "$id", "$comment", "$ref"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"),
        *("dependentSchemas", "dependentRequired", "dependencies", "unevaluatedProperties"),
    )
)


def provider_schema(schema: Schema | bool) -> dict[str, Any]:
    """Return the model-facing form of `schema`: an object with `properties`, no combinator at its root, self-contained.

    Members that only a branch of a root `allOf`, `anyOf` or `oneOf` declares are shown, and required where every branch
    requires them. What the projection cannot say, validation still enforces. `schema` is not changed.

    Raises:
        SchemaRefused: the root admits no object, or a `$ref` at the root points nowhere.

    Source: N3, ADR 0005.
    """
    if schema is True:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping) or "object" not in admitted_types(schema, schema):
        raise SchemaRefused(
            "the root admits no object, and the arguments of a tool are one; wrap the value in a property"
        )
    root: Schema = schema
    folded = view(root, root)
    properties = dict(folded.get("properties", {}))
    required = list(folded.get("required", ()))
    for keyword in ("anyOf", "oneOf"):
        branches = [
            view(branch, root) for branch in folded.get(keyword, ()) if "object" in admitted_types(branch, root)
        ]
        for branch in branches:
            for name, inner in branch.get("properties", {}).items():
                properties.setdefault(name, inner)
        common = [set(branch.get("required", ())) for branch in branches]
        if common:
            required += sorted(set.intersection(*common) - set(required))
    shown = {key: value for key, value in folded.items() if key not in _NOT_AT_ROOT}
    shown |= {"type": "object", "properties": properties}
    if required:
        shown["required"] = required
    for keyword in ("$defs", "definitions"):
        if keyword in root:
            shown[keyword] = root[keyword]
    projected = copy.deepcopy(shown)
    _modernize(projected)
    _carry_targets(projected, root)
    return projected


def _modernize(projected: dict[str, Any]) -> None:
    """Say tuples as 2020-12 does: the projection names no dialect, and providers read the newest."""
    todo: list[Any] = [projected]
    while todo:
        place = todo.pop()
        if isinstance(place, dict):
            if isinstance(place.get("items"), list):
                place["prefixItems"] = place.pop("items")
                if "additionalItems" in place:
                    place["items"] = place.pop("additionalItems")
            todo += [inner for _, inner in subschemas(place)]


def _carry_targets(projected: dict[str, Any], root: Schema) -> None:
    """Keep every `$ref` pointing at something: a target that stood in a dropped branch moves under `$defs`."""
    moved: dict[str, str] = {}
    todo: list[Any] = [projected]
    while todo:
        place = todo.pop()
        if not isinstance(place, dict):
            continue
        reference = place.get("$ref")
        if isinstance(reference, str) and not _resolves(projected, reference):
            if reference not in moved:
                name = f"moved_{len(moved) + 1}"
                moved[reference] = f"#/$defs/{name}"
                target = copy.deepcopy(resolve(root, reference))
                _modernize(target)
                projected.setdefault("$defs", {})[name] = target
                todo.append(target)
            place["$ref"] = moved[reference]
        todo += [inner for _, inner in subschemas(place)]


def _resolves(projected: dict[str, Any], reference: str) -> bool:
    try:
        resolve(projected, reference)
    except SchemaRefused:
        return False
    return True
