"""Where a deployment names its stdio servers. Imports nothing: commands that never read the file know its name too."""

from typing import Final

VARIABLE: Final = "AGENTIC_MCP_SERVERS"
"""Of the environment; its value is the file's path."""
FILE: Final = "mcp_servers.json"
"""What the file is called in a folder of this project."""
