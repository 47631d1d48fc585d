"""What the database knows of an organization's MCP servers: where each is in its life, what it offered, and what of that was approved."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from agentic.services.mcp.catalog import Catalog, RemoteTool
from agentic.services.mcp.config import ServerConfig


class ServerState(StrEnum):
    """Where a server is in its life."""

    REGISTERED = "registered"
    """Its configuration was written. Nobody has talked to it."""
    VERIFIED = "verified"
    """It was reached and has shown what it offers. No run is offered any of it."""
    ACTIVE = "active"
    """An admin activated it: what was approved of it is offered to new runs."""
    DEGRADED = "degraded"
    """It was active and cannot be reached. New runs do without it; a probe that succeeds makes it active again."""
    RETIRED = "retired"
    """For good; its name is not used again, because grants and approvals name it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredServer:
    """One server of one organization."""

    id: UUID
    organization_id: UUID
    config: ServerConfig
    """The command of a stdio server is the deployment's and is put in from there; ``launchable`` says whether it was."""
    state: ServerState
    revision: int
    """Grows with every change of the row that could change what a run is shown or how the server is talked to."""
    endpoint_revision: int
    """The revision that brought endpoint and authentication as they are: what was dialled under another one says nothing of this server."""
    connection_id: UUID | None
    """The connection of the vault whose credential it gets; ``None`` for the scheme `none`."""
    offered_hash: str | None
    """Of the catalog it showed last; ``None`` before it was verified."""
    resources: bool
    """Whether it offers resources."""
    reason: str | None
    """Why its last probe failed: a code of ``Trouble``, never its own words; ``None`` when it answered, or was never asked."""
    failures: int
    """Probes that failed in a row."""
    verified_at: datetime | None
    activated_at: datetime | None
    retired_at: datetime | None
    seen_at: datetime | None
    """When it last answered."""
    created_at: datetime
    launch_fault: str | None = None
    """Why a stdio server cannot be started here, although it stands in the rows; ``None`` for one that can, and for every other."""

    @property
    def launchable(self) -> bool:
        """Whether this deployment can start it, or reaches it elsewhere."""
        return self.launch_fault is None

    @property
    def server_id(self) -> str:
        """The word its tools carry in their names."""
        return self.config.server_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A server with what it offers now and what was approved of it: all that decides which of its tools are offered."""

    server: StoredServer
    offered: Catalog
    """As it was seen last."""
    approved: Mapping[str, RemoteTool]
    """By remote name, each as a person approved it."""

    @property
    def unchanged(self) -> tuple[RemoteTool, ...]:
        """Approved tools that are still declared so: the ones a new run may have."""
        return tuple(tool for tool in self.offered.tools if self._same(tool))

    @property
    def quarantined(self) -> tuple[RemoteTool, ...]:
        """Approved tools that are declared differently now, as they are declared now. They wait for a person."""
        return tuple(tool for tool in self.offered.tools if tool.remote_name in self.approved and not self._same(tool))

    @property
    def waiting(self) -> tuple[RemoteTool, ...]:
        """Tools that nobody has approved yet."""
        return tuple(tool for tool in self.offered.tools if tool.remote_name not in self.approved)

    @property
    def withdrawn(self) -> tuple[str, ...]:
        """Remote names of approved tools that the server offers no more, or not in a way that can be carried."""
        return tuple(sorted(self.approved.keys() - {tool.remote_name for tool in self.offered.tools}))

    def knows(self, remote_name: str) -> bool:
        """Whether a tool of this name was offered, approved or classified here; another name may be mistyped."""
        return (
            self.offered.tool(remote_name) is not None
            or remote_name in self.approved
            or remote_name in self.server.config.per_tool
        )

    def _same(self, tool: RemoteTool) -> bool:
        known = self.approved.get(tool.remote_name)
        return known is not None and known.declaration_hash == tool.declaration_hash


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """One tool as one catalog declared it, and what became of that."""

    catalog_hash: str
    tool: RemoteTool
    discovered_at: datetime
    """When this catalog was first seen."""
    withdrawn_at: datetime | None
    """When the server was first seen without the tool after that."""
    approved_at: datetime | None
    """When it was last approved so; ``None`` when it never was."""
    approved_by: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What one look at a server changed."""

    server: StoredServer
    """As it is now."""
    previous_hash: str | None
    """Of the catalog it showed before; ``None`` for its first."""
    new_generation: bool
    """Whether the catalog was not known before and was written down."""
