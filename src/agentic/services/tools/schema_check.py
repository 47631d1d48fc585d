"""Decides at registration whether a schema is let in, so that a schema nobody can carry costs that one tool and not the run.

A schema comes from our own code or from a stranger's server, so its size, depth and expansion are bounded before anything
compiles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentic.contract.canonical import CanonicalError
from agentic.contract.encoding import encoded_size
from agentic.contract.normal_form import nfc
from agentic.services.tools.schema_compile import compile_schema
from agentic.services.tools.schema_tree import IN_PLACE, Schema, SchemaRefused, pointer, resolve, subschemas

MAX_SCHEMA_BYTES: Final = 32 * 1024
MAX_SCHEMA_DEPTH: Final = 16
MAX_EXPANDED_NODES: Final = 10_000
ENFORCED_FORMATS: Final = frozenset(
    (
        *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
        *("uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer"),
        *("regex", "uuid"),
    )
)
"""The values of `format` that validation asserts; any other is ignored, see `unenforced_formats`."""
_UNKNOWN_TO_DRAFT_7: Final = frozenset({"uuid", "duration"})
_REFUSED_KEYWORDS: Final = ("$dynamicRef", "$recursiveRef")


def check_schema(schema: Schema | bool) -> None:
    """Let `schema` through, or say why it is refused.

    Limits: 32 KiB, subschemas 16 deep, 10,000 subschemas once every local `$ref` is expanded (a recursive one once).

    Raises:
        SchemaRefused: beyond a limit; a `$ref` that leads out of the schema, to nothing, or only to itself; a dialect other
            than 2020-12 and draft-07; an unsafe pattern; an invalid schema.

    Source: N3, ADR 0020, docs/architecture.md ("Numbers").
    """
    if schema is True:
        return
    if not isinstance(schema, Mapping):
        raise SchemaRefused("a schema that accepts nothing, or is no object, makes no tool")
    root = dict(schema)
    # Depth first: measuring the size of a very deep schema would exhaust the stack.
    _check_depth(root)
    try:
        size = encoded_size(root)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaRefused("the schema is not plain JSON") from error
    if size > MAX_SCHEMA_BYTES:
        raise SchemaRefused(f"the schema has {size} bytes; at most {MAX_SCHEMA_BYTES} are carried")
    _check_references(root)
    _Expansion(root).count(root, (), frozenset())
    compile_schema(in_form_c(root))


def in_form_c(schema: Schema) -> dict[str, Any]:
    """Return `schema` with its text in Unicode form C, as the values it will judge.

    Raises:
        SchemaRefused: two names in it become equal.
    """
    try:
        prepared = nfc(dict(schema))
    except CanonicalError as error:
        raise SchemaRefused(f"the schema has no Unicode form C: {error}") from error
    return prepared if isinstance(prepared, dict) else {}


def unenforced_formats(schema: Schema | bool) -> tuple[str, ...]:
    """Return each `format` that validation ignores as `pointer: name`, for the report at registration.

    Source: ADR 0020.
    """
    found: list[str] = []
    old = isinstance(schema, Mapping) and "draft-07" in str(schema.get("$schema", ""))
    enforced = ENFORCED_FORMATS - _UNKNOWN_TO_DRAFT_7 if old else ENFORCED_FORMATS
    todo: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while todo:
        path, place = todo.pop()
        if isinstance(place, Mapping):
            name = place.get("format")
            if isinstance(name, str) and name not in enforced:
                found.append(f"{pointer(path)}: {name[:64]}")
            todo += [((*path, *step), inner) for step, inner in subschemas(place)]
    return tuple(sorted(found))


def _check_depth(root: Schema) -> None:
    level: list[Any] = [root]
    for _ in range(MAX_SCHEMA_DEPTH):
        level = [inner for place in level if isinstance(place, Mapping) for _, inner in subschemas(place)]
        if not level:
            return
        if len(level) > MAX_EXPANDED_NODES:
            raise SchemaRefused(f"the schema has more than {MAX_EXPANDED_NODES} subschemas")
    raise SchemaRefused(f"the schema is nested more than {MAX_SCHEMA_DEPTH} deep")


def _check_references(root: Schema) -> None:
    todo: list[tuple[tuple[str, ...], Schema]] = [((), root)]
    while todo:
        path, place = todo.pop()
        for keyword in _REFUSED_KEYWORDS:
            if keyword in place:
                raise SchemaRefused(f"{pointer(path)} uses {keyword}; only $ref into the schema itself is followed")
        if path and "$id" in place:
            raise SchemaRefused(f"{pointer(path)} has an $id, which would change what its $ref mean")
        if "$ref" in place:
            _check_chain(root, place, path)
        todo += [((*path, *step), inner) for step, inner in subschemas(place) if isinstance(inner, Mapping)]


def _check_chain(root: Schema, place: Schema, path: tuple[str, ...]) -> None:
    reference = place["$ref"]
    if not isinstance(reference, str):
        raise SchemaRefused(f"{pointer(path)} has a $ref that is no text")
    try:
        target = resolve(root, reference)
    except SchemaRefused as error:
        raise SchemaRefused(f"{pointer(path)}: {error}") from error
    if not isinstance(target, Mapping | bool):
        raise SchemaRefused(f"{pointer(path)}: $ref {reference[:200]!r} names no schema")
    if isinstance(target, Mapping) and _judges_itself(root, target, place):
        raise SchemaRefused(
            f"{pointer(path)}: $ref {reference[:200]!r} leads back to itself without going into the value"
        )


def _judges_itself(root: Schema, start: Schema, goal: Schema) -> bool:
    """Whether `goal` is met again while the value stays the same: such a schema says nothing and never ends."""
    seen: set[int] = set()
    todo: list[Any] = [start]
    while todo:
        place = todo.pop()
        if not isinstance(place, Mapping) or id(place) in seen:
            continue
        if place is goal:
            return True
        seen.add(id(place))
        if isinstance(place.get("$ref"), str):
            todo.append(resolve(root, place["$ref"]))
        todo += [inner for step, inner in subschemas(place) if step[0] in IN_PLACE]
    return False


class _Expansion:
    """Counts subschemas with every reference expanded where it stands; a recursive one is not entered again."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._nodes = 0

    def count(self, schema: Any, path: tuple[str, ...], entered: frozenset[str]) -> None:
        self._nodes += 1
        if self._nodes > MAX_EXPANDED_NODES:
            raise SchemaRefused(f"the schema has more than {MAX_EXPANDED_NODES} subschemas once its $ref are expanded")
        if not isinstance(schema, Mapping):
            return
        for step, inner in subschemas(schema):
            if step[0] not in ("$defs", "definitions"):
                self.count(inner, (*path, *step), entered)
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in entered:
            self.count(resolve(self._root, reference), path, entered | {reference})
