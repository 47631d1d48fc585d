"""A server made with the SDK, as most of the world makes them: over standard streams, or over HTTP on the port it is given."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Image

server = MCPServer("notes")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fails() -> str:
    """Fails."""
    raise ValueError("no such note")


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG 1", format="png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
