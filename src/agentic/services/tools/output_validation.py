"""Checks what a handler returned against the schema its tool declares, before anything is removed or bounded.

What happens then to a finished effect is `outcomes` and the invoker (J4): this only says what is wrong.
"""

from __future__ import annotations

from agentic.contract.json_types import JsonValue
from agentic.services.tools.schema_tree import Schema
from agentic.services.tools.schemas import validator_for


def validate_output(value: JsonValue, schema: Schema | bool) -> str | None:
    """Return what `value` breaks as `path: rule`, never a value; `None` when it holds.

    Members the schema does not name are let through: a vendor may add a field.

    Args:
        value: data as `plain` returns it.
        schema: the tool's output schema.

    Raises:
        SchemaRefused: the schema cannot be compiled; registration lets none through.

    Source: J4, B2.
    """
    problems = validator_for(schema, closed=False).problems(value)
    return "; ".join(problems) or None
