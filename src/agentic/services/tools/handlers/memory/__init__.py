"""What agents keep from one run to the next: observations and preferences, each with the label of where it came from."""

from agentic.services.tools.handlers.memory.tools import memory_tools

__all__ = ["memory_tools"]
