"""How a definition or a principal names all tools of one server at once: ``mcp.<server>.*``. Nothing else is a pattern."""

import re
from collections.abc import Iterable
from typing import Final

_ALL_OF_A_SERVER: Final = re.compile(r"mcp\.[a-z][a-z0-9_]*\.\*")


def is_pattern(name: str) -> bool:
    """Whether a name stands for all tools of a server."""
    return name.endswith(".*") and _ALL_OF_A_SERVER.fullmatch(name) is not None


def covers(pattern: str, tool: str) -> bool:
    """Whether a tool is meant: by its own name, or by the pattern of its server."""
    return pattern == tool or (is_pattern(pattern) and tool.startswith(pattern[:-1]))


def names_remote(names: Iterable[str]) -> bool:
    """Whether any of these names, or patterns, is of a tool that an MCP server brings."""
    return any(name.startswith("mcp.") for name in names)
