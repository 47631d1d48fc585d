"""The one place that joins ports and adapters: from what a deployment declares to objects that work together.

Each name is imported when it is first used: whoever declares an app need not wait for all that opens one.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic.bootstrap.app import App
    from agentic.bootstrap.edges import api_ports, function_ports, workflows
    from agentic.bootstrap.opening import open_platform
    from agentic.bootstrap.platform import Platform

_HOMES = {
    "App": "agentic.bootstrap.app",
    "Platform": "agentic.bootstrap.platform",
    "api_ports": "agentic.bootstrap.edges",
    "function_ports": "agentic.bootstrap.edges",
    "open_platform": "agentic.bootstrap.opening",
    "workflows": "agentic.bootstrap.edges",
}

__all__ = ["App", "Platform", "api_ports", "function_ports", "open_platform", "workflows"]


def __getattr__(name: str) -> object:
    """Import a name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'agentic.bootstrap' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
