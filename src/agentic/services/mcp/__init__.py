"""Tools of MCP servers: strangers' systems with a convenient protocol. Nothing they say is believed but the shape of their JSON."""
