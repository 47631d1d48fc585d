"""The one way to validate: a cached validator per schema, whose answers name a path and a rule and never a value.

Which schemas are let in is `schema_check`, what a model is shown is `schema_projection`; both are offered from here.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any, Final

from agentic.contract.encoding import encode
from agentic.contract.json_types import JsonValue
from agentic.services.tools.schema_check import check_schema, in_form_c, unenforced_formats
from agentic.services.tools.schema_compile import DEFAULT_DIALECT, compile_schema
from agentic.services.tools.schema_projection import provider_schema
from agentic.services.tools.schema_tree import Schema, SchemaRefused
from agentic.services.tools.schema_words import declared_names, describe

__all__ = ["SchemaRefused", "SchemaValidator", "check_schema", "provider_schema", "unenforced_formats", "validator_for"]

MAX_PROBLEMS: Final = 3
_CACHE_SIZE: Final = 1_024
_IN_PLACE: Final = ("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")
_OPEN_OR_CLOSED: Final = ("additionalProperties", "unevaluatedProperties")


class SchemaValidator:
    """A compiled schema. Safe to share between tasks and threads."""

    def __init__(self, schema: dict[str, Any], *, closed: bool) -> None:
        self.schema: Final = schema
        """The schema in Unicode form C, as the values it is asked about."""
        self._compiled: Final = compile_schema(_closed(schema) if closed else schema)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of members that the schema declares, at whatever depth."""
        return declared_names(self.schema)

    def problems(self, value: JsonValue) -> tuple[str, ...]:
        """Return what `value` broke as `path: rule`, at most three; empty when it is valid.

        Never raises: a value the validator cannot read is a problem too.

        Source: B2 and B3 (no value in a message, and no name of the value's own).
        """
        try:
            found = islice(self._compiled.iter_errors(value), MAX_PROBLEMS)
            return tuple(describe(error, self.schema, self.names) for error in found)
        except (ValueError, TypeError, RecursionError):
            # Lone surrogates, keys that are no strings, too deep. The error quotes the value, so it goes no further.
            return ("is not plain JSON data",)


def validator_for(schema: Schema | bool, *, closed: bool = True) -> SchemaValidator:
    """Return the validator of `schema`, compiled once for all schemas that say the same.

    Args:
        schema: 2020-12, or draft-07 where it says so. Nobody changes it afterwards: it is not read again.
        closed: whether members the schema does not declare are refused at the root when it is silent about them. Arguments
            are read closed, results open.

    Raises:
        SchemaRefused: `schema` cannot be compiled; `check_schema` says so at registration.

    Source: ADR 0005, 0020.
    """
    original = _ANYTHING if schema is True else schema
    if not isinstance(original, Mapping):
        raise SchemaRefused("a schema that accepts nothing, or is no object, makes no tool")
    with _lock:
        if (seen := _seen.get((id(original), closed))) is not None and seen[0] is original:
            return seen[1]
    validator = _by_content(original, closed=closed)
    with _lock:
        # kept with the schema itself: an id is only its own as long as it lives
        _seen[id(original), closed] = original, validator
        while len(_seen) > _CACHE_SIZE:
            _seen.popitem(last=False)
    return validator


def _by_content(original: Schema, *, closed: bool) -> SchemaValidator:
    try:
        key = hashlib.sha256(encode(dict(original))).digest(), closed
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaRefused("the schema is not plain JSON") from error
    with _lock:
        if (known := _cache.get(key)) is not None:
            _cache.move_to_end(key)
            return known
    validator = SchemaValidator(in_form_c(original), closed=closed)
    with _lock:
        _cache[key] = validator
        while len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    return validator


_ANYTHING: Final[Schema] = {}
_cache: OrderedDict[tuple[bytes, bool], SchemaValidator] = OrderedDict()
_seen: OrderedDict[tuple[int, bool], tuple[Schema, SchemaValidator]] = OrderedDict()
_lock = Lock()


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if any(keyword in schema for keyword in _OPEN_OR_CLOSED):
        return schema
    # additionalProperties sees only its own object's `properties`; with branches the names they declare must count too.
    branched = any(keyword in schema for keyword in _IN_PLACE)
    if branched and schema.get("$schema", DEFAULT_DIALECT).rstrip("#") != DEFAULT_DIALECT:
        return schema  # draft-07 has no keyword that sees through branches
    return {**schema, "unevaluatedProperties" if branched else "additionalProperties": False}
