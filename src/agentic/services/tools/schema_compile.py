"""Compiles a JSON Schema the one permitted way: nothing fetched, patterns in linear time, `format` asserted.

`jsonschema_rs` fetches remote references and reads local files by default, which is why nothing else here calls it.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeAlias

import jsonschema_rs

from agentic.services.tools.schema_tree import SchemaRefused

Compiled: TypeAlias = jsonschema_rs.Draft202012Validator | jsonschema_rs.Draft7Validator

_DIALECTS: Final[dict[str, type[Compiled]]] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "https://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
}
DEFAULT_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_MAX_MESSAGE: Final = 300


def compile_schema(schema: dict[str, Any]) -> Compiled:
    """Return a validator of `schema` in the dialect it declares, 2020-12 when it is silent.

    Raises:
        SchemaRefused: another dialect, an invalid schema, a reference that leads out or nowhere, or a pattern with
            look-around, back-references or a size the linear engine refuses.

    Source: N3, ADR 0020.
    """
    declared = schema.get("$schema", DEFAULT_DIALECT)
    factory = _DIALECTS.get(declared.rstrip("#")) if isinstance(declared, str) else None
    if factory is None:
        raise SchemaRefused(
            f"$schema {str(declared)[:100]!r} is not a dialect read here; use {DEFAULT_DIALECT} or draft-07"
        )
    try:
        return factory(
            schema,
            retriever=_deny,
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (ValueError, TypeError, RecursionError) as error:
        # ValidationError and ReferencingError of jsonschema_rs are ValueErrors. The first line says what, the rest quotes the schema.
        reason = str(error).strip().split("\n", 1)[0][:_MAX_MESSAGE]
        raise SchemaRefused(f"not a usable JSON Schema: {reason}") from error


def _deny(uri: str) -> NoReturn:
    raise ValueError(f"references out of the schema are not followed ({uri[:100]})")
