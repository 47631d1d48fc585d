"""A small MCP server over standard input and output, to try servers with: ``python -m agentic.local.mcp_server``. Needs no package."""
