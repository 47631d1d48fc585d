"""What commands import while they run, for processes that are forked where it is there already."""

import pkgutil

import agentic.cli

COMMANDS = (
    *(f"agentic.cli.{module.name}" for module in pkgutil.iter_modules(agentic.cli.__path__)),
    *("agentic.bootstrap.opening", "agentic.runtime.agent.agno.runtime", "agentic.services.mcp.session"),
    *("agentic.services.mcp.http", "agentic.services.mcp.stdio"),
)
DEMO = (
    *("agentic.local.demo.command", "agentic.local.demo.stage", "agentic.local.demo.story"),
    *("agentic.local.demo.enrichment.story", "agentic.local.demo.mcp.story"),
)
