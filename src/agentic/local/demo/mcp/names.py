"""What the story's server and its tools are called. Imports nothing, so that a demo that cannot start says so at once."""

from typing import Final

SERVER: Final = "pottery"
FIND, WRITE, GUESTS = (f"mcp.{SERVER}.{name}" for name in ("find_notes", "add_note", "guest_book"))
