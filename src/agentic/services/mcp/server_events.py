"""Events of servers: which one it is and what happened to it, as codes, never in its words (docs/telemetry.md).

The rows hold what a server offered; an event may be kept elsewhere, for longer, by others. The one thing of a server's own in an event is
the name of a tool, cut and without what cannot be seen. Events are told, not stored: a process that dies first leaves the row alone.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

from agentic.services.mcp.catalog import Conflict, Rejected
from agentic.services.mcp.config import AuthScheme
from agentic.services.mcp.failures import Trouble
from agentic.services.mcp.naming import shown

_log = logging.getLogger("agentic.events")

Transport = Literal["stdio", "http"]
Field = str | int | None | list[str]


class ServerEventName(StrEnum):
    """All that is told of a server."""

    CONNECTED = "mcp.server.connected"
    """A handshake was done."""
    DISCONNECTED = "mcp.server.disconnected"
    """A session ended, or did not come about."""
    REAUTHENTICATED = "mcp.server.reauthenticated"
    """A run used its one re-authentication. A server with many of them grants tokens that live shorter than its runs."""
    CATALOG_CHANGED = "mcp.catalog.changed"
    """It offers something else than when it was last seen. No run that has begun is shown any of it."""
    CATALOG_CONFLICT = "mcp.catalog.conflict"
    """Tools that would have one name here; none of them is offered."""
    TOOL_REJECTED = "mcp.tool.rejected"
    """A tool that cannot be carried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teller:
    """Tells the events of one server to the logger ``agentic.events``: one INFO record each, its fields as the record's ``extra``."""

    organization_id: UUID
    server_id: str

    def connected(self, *, transport: Transport, tools: int, duration_ms: int) -> None:
        """A handshake was done, and the list read.

        Args:
            tools: how many can be carried.
            duration_ms: from the start of the process, or the first byte, to the end of the list.
        """
        self._tell(ServerEventName.CONNECTED, transport=transport, tools=tools, duration_ms=duration_ms)

    def disconnected(self, *, reason_code: Trouble | Literal["idle", "closed", "replaced"]) -> None:
        """A session ended, or did not come about."""
        self._tell(ServerEventName.DISCONNECTED, reason_code=str(reason_code))

    def reauthenticated(self, *, run_id: UUID, scheme: AuthScheme, outcome: Literal["renewed", "refused"]) -> None:
        """A run used its one re-authentication."""
        self._tell(ServerEventName.REAUTHENTICATED, run_id=str(run_id), scheme=str(scheme), outcome=outcome)

    def catalog_changed(self, *, old_hash: str | None, new_hash: str) -> None:
        """The list differs; ``old_hash`` is ``None`` for the first one."""
        self._tell(ServerEventName.CATALOG_CHANGED, old_hash=old_hash, new_hash=new_hash)

    def catalog_conflict(self, conflict: Conflict) -> None:
        """Two or more tools of the catalog would have one name here."""
        self._tell(
            ServerEventName.CATALOG_CONFLICT,
            tool_name=conflict.name,
            remote_names=[shown(name) for name in conflict.remote_names],
        )

    def tools_rejected(self, rejected: Sequence[Rejected]) -> None:
        """Tools that cannot be carried, one event each. Why stands in the catalog; the reason may quote the server's schema."""
        for each in rejected:
            self._tell(ServerEventName.TOOL_REJECTED, remote_name=shown(each.remote_name), reason_code=str(each.code))

    def _tell(self, name: ServerEventName, **fields: Field) -> None:
        if _log.isEnabledFor(logging.INFO):
            known = {"organization_id": str(self.organization_id), "server_id": self.server_id}
            _log.info("%s %s", name, self.server_id, extra={"event_name": str(name), **known, **fields})
