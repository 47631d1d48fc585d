"""agentic governs what AI agents do to the world.

It decides each tool call, runs it at most once, bounds what comes back, and can always say what happened. Here stands what a product
needs to declare tools and agents and to join them to a database; everything else has a room of its own. Names that need the database
or the agent framework are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic.bootstrap import App, Platform, open_platform
    from agentic.contract.principal import Principal, Role, RunCeilings
    from agentic.contract.results import ErrorCode, ToolError, ToolResult
    from agentic.contract.trust import Trust
    from agentic.runtime.agent.definition import AgentDefinition
    from agentic.services.tools.context import CallContext
    from agentic.services.tools.declarations import Tool, internal_tool, vendor_tool

_HOMES = {
    "App": "agentic.bootstrap.app",
    "Platform": "agentic.bootstrap.platform",
    "open_platform": "agentic.bootstrap.opening",
    "Principal": "agentic.contract.principal",
    "Role": "agentic.contract.principal",
    "RunCeilings": "agentic.contract.principal",
    "ErrorCode": "agentic.contract.results",
    "ToolError": "agentic.contract.results",
    "ToolResult": "agentic.contract.results",
    "Trust": "agentic.contract.trust",
    "AgentDefinition": "agentic.runtime.agent.definition",
    "CallContext": "agentic.services.tools.context",
    "Tool": "agentic.services.tools.declarations",
    "internal_tool": "agentic.services.tools.declarations",
    "vendor_tool": "agentic.services.tools.declarations",
}

__all__ = [
    "AgentDefinition",
    "App",
    "CallContext",
    "ErrorCode",
    "Platform",
    "Principal",
    "Role",
    "RunCeilings",
    "Tool",
    "ToolError",
    "ToolResult",
    "Trust",
    "internal_tool",
    "open_platform",
    "vendor_tool",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'agentic' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
