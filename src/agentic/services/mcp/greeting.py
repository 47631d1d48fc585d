"""What a server says of itself in the handshake, cut to what is kept of it. Claims of a stranger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp_types import InitializeResult

_MAX_INSTRUCTIONS: Final = 4_096


@dataclass(frozen=True, kw_only=True, slots=True)
class Greeting:
    """What a server said of itself in the handshake. Claims of a stranger."""

    protocol_version: str
    name: str
    version: str
    capabilities: Mapping[str, Any]
    instructions: str | None
    """At most 4,096 characters; external text."""

    def offers(self, capability: str) -> bool:
        """Whether a list of this kind may be asked for."""
        return self.capabilities.get(capability) is not None


def greeting_of(said: "InitializeResult") -> Greeting:
    """What is kept of an answer to the handshake."""
    return Greeting(
        protocol_version=said.protocol_version[:64],
        name=said.server_info.name[:256],
        version=said.server_info.version[:64],
        capabilities=said.capabilities.model_dump(mode="json", exclude_none=True),
        instructions=said.instructions[:_MAX_INSTRUCTIONS] if said.instructions else None,
    )
