"""Stored contracts as specs again. One row that cannot be read costs its one tool, never the run that froze it (ADR 0027).

A row may be older or newer than this release, or damaged. What it was frozen under stays its hash, so that effects which were
journaled under it still answer.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agentic.contract.canonical import digest_of
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects, ToolSpec, UnknownBinding
from agentic.services.tools.schemas import SchemaRefused, check_schema, provider_schema

UNREADABLE = "unreadable"
"""Tag of the binding that stands in for a contract this release cannot read."""
_ANYTHING: Mapping[str, Any] = {"type": "object", "additionalProperties": True}


def read_contract(*, contract_hash: str, name: str, version: int, text: str) -> ToolSpec:
    """The spec a stored row holds, under the row's own hash. Never raises.

    Returns:
        The spec; for a row that is damaged or of a shape this release does not know, a spec of that name and hash whose calls
        are all ``tool_unavailable``.
    """
    if digest_of(text.encode()) != contract_hash:
        return missing_contract(contract_hash=contract_hash, name=name, version=version)
    try:
        written = json.loads(text)
        spec = ToolSpec.model_validate(written)
    except (ValidationError, ValueError, RecursionError):
        return missing_contract(contract_hash=contract_hash, name=name, version=version, written=_written(text))
    return _under(contract_hash, spec)


def missing_contract(
    *, contract_hash: str, name: str, version: int = 1, written: Mapping[str, Any] | None = None
) -> ToolSpec:
    """What stands in for a contract that is not there or cannot be read: seen by the model as it was, run by nobody.

    Args:
        written: the row's JSON, from which description and input schema are kept where they are sound.
    """
    written = written or {}
    description, schema = written.get("description"), written.get("input_schema")
    spec = ToolSpec(
        name=name,
        description=description if isinstance(description, str) else "This tool cannot be used now.",
        input_schema=schema if _sound(schema) else dict(_ANYTHING),
        output_schema={},
        version=max(version, 1),
        binding=UnknownBinding(type=UNREADABLE),
        side_effects=SideEffects.SEND,  # the most careful reading of something nobody can read
        idempotency=IdempotencyClass.NON_IDEMPOTENT,
        risk=Risk.HIGH,
        repeatable=False,
    )
    return _under(contract_hash, spec)


def readable(spec: ToolSpec) -> bool:
    """Whether the spec is what the row held, not something in its place."""
    return not (isinstance(spec.binding, UnknownBinding) and spec.binding.type == UNREADABLE)


def _under(contract_hash: str, spec: ToolSpec) -> ToolSpec:
    spec.__dict__["contract_hash"] = contract_hash  # a release that adds a field would compute another
    return spec


def _written(text: str) -> Mapping[str, Any] | None:
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return written if isinstance(written, dict) else None


def _sound(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    try:
        check_schema(schema)
        provider_schema(schema)
    except SchemaRefused:
        return False
    return True
