"""A run's tools as agno functions: names, descriptions and schemas for the provider, an entry point for reads alone.

A write has no callable here: the loop can only pause at it (D1).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agno.tools.function import Function

from agentic.contract.errors import RegistryError
from agentic.services.tools.models import (
    FRAMEWORK_NAMES,
    MAX_MODEL_NAME_LENGTH,
    MAX_MODEL_TOOLS,
    FrozenTool,
    Mode,
    model_tool_name,
)
from agentic.services.tools.schemas import provider_schema

MAX_DESCRIPTION = 1024
"""The lowest cap a provider documents."""
_CUT = " … [cut]"
_INTERNAL = ("external_execution", "requires_confirmation", "approval_type")

ReadEntry = Callable[[str], Awaitable[str]]
"""Runs the planned read with this call id."""


class GovernedFunction(Function):
    """A function whose pausing is not told to the provider; agno would send the flags along and strict providers refuse them."""

    def to_dict(self) -> dict[str, Any]:
        """What goes on the wire: name, description, parameters, strict."""
        return {key: value for key, value in super().to_dict().items() if key not in _INTERNAL}


def paused_function(
    name: str, description: str | None = None, parameters: dict[str, Any] | None = None
) -> GovernedFunction:
    """A function the loop pauses at, whatever its arguments."""
    return GovernedFunction(
        name=name,
        description=description,
        parameters=parameters if parameters is not None else {"type": "object", "properties": {}},
        strict=False,
        entrypoint=None,
        skip_entrypoint_processing=True,
        external_execution=True,
        external_execution_silent=True,
    )


def read_function(name: str, description: str, parameters: dict[str, Any], entry: ReadEntry) -> GovernedFunction:
    """A function the loop runs, through ``entry``."""

    async def run(call_id: str) -> str:
        return await entry(call_id)

    return GovernedFunction(
        name=name,
        description=description,
        parameters=parameters,
        strict=False,
        entrypoint=run,
        skip_entrypoint_processing=True,
    )


def functions(tools: Sequence[FrozenTool], entry: ReadEntry) -> list[Function]:
    """The functions an agent is shown.

    Raises:
        RegistryError: names that clash, are reserved by the framework or are too long, and too many tools, all at once (N1).
    """
    _check(tools)
    shown: list[Function] = []
    for tool in tools:
        name = model_tool_name(tool.spec.name)
        description = shorten(tool.spec.description)
        parameters = provider_schema(tool.spec.input_schema)
        if tool.mode is Mode.PAUSED:
            shown.append(paused_function(name, description, parameters))
        else:
            shown.append(read_function(name, description, parameters, entry))
    return shown


def shorten(description: str) -> str:
    """A description within the provider's cap, cut where the model can see it."""
    if len(description) <= MAX_DESCRIPTION:
        return description
    return description[: MAX_DESCRIPTION - len(_CUT)] + _CUT


def _check(tools: Sequence[FrozenTool]) -> None:
    faults = []
    by_name: dict[str, list[str]] = {}
    for tool in tools:
        by_name.setdefault(model_tool_name(tool.spec.name), []).append(tool.spec.name)
    for name, owners in by_name.items():
        if len(owners) > 1:
            faults.append(f"{', '.join(sorted(owners))}: one model-facing name, {name}; rename all but one")
        if name in FRAMEWORK_NAMES:
            faults.append(f"{owners[0]}: the agent framework answers {name} itself; rename the tool")
        if len(name) > MAX_MODEL_NAME_LENGTH:
            faults.append(
                f"{owners[0]}: {len(name)} characters, providers take at most {MAX_MODEL_NAME_LENGTH}; shorten the name"
            )
    if len(tools) > MAX_MODEL_TOOLS:
        faults.append(f"{len(tools)} tools, providers take at most {MAX_MODEL_TOOLS}; show this agent fewer")
    if faults:
        raise RegistryError(faults)
