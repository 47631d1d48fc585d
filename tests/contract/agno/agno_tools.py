"""Tools and messages for the unit tests of the agno room."""

from typing import Any

from agno.models.message import Message

from agentic.services.tools.models import (
    FrozenTool,
    HandlerBinding,
    IdempotencyClass,
    Mode,
    Risk,
    SideEffects,
    ToolSpec,
)


def frozen(name: str, *, mode: Mode = Mode.INLINE, description: str = "A tool.") -> FrozenTool:
    """A tool frozen with this mode."""
    reads = mode is Mode.INLINE
    spec = ToolSpec(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": {}},
        output_schema={"type": "object"},
        binding=HandlerBinding(handler_key=name),
        side_effects=SideEffects.READ if reads else SideEffects.WRITE,
        idempotency=IdempotencyClass.READ_ONLY if reads else IdempotencyClass.NON_IDEMPOTENT,
        risk=Risk.LOW,
    )
    return FrozenTool(spec=spec, mode=mode)


def call(call_id: str, name: str = "crm_search", arguments: Any = "{}") -> dict[str, Any]:
    """A tool call as agno holds it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: dict[str, Any], stop: str | None = "tool_calls", **fields: Any) -> Message:
    """An answer of the model."""
    data = {} if stop is None else {"_stop": stop}
    return Message(role="assistant", tool_calls=list(calls) or None, provider_data=data, **fields)


def result(call_id: str, text: str = "ok") -> Message:
    """A tool message."""
    return Message(role="tool", tool_call_id=call_id, tool_name="crm_search", content=text)
