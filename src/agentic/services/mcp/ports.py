"""What the life cycle of servers needs of the database. Postgres in every deployment."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from agentic.services.mcp.asking import RunMarks
from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.config import Classification, ServerConfig
from agentic.services.mcp.records import Declared, Observation, Standing, StoredServer

__all__ = ["Revisions", "RunMarks", "ServerStore", "Sightings"]


class Revisions(Protocol):
    """The cheap question, asked before a run starts and before each of its segments."""

    async def revisions(self, organization_id: UUID) -> Mapping[str, int]:
        """The revision of every active or degraded server of an organization, by server id: one statement, one index."""
        ...

    async def standings(self, organization_id: UUID, server_ids: Sequence[str]) -> list[Standing]:
        """These servers whole, by server id."""
        ...


class Sightings(Protocol):
    """Where it is kept what servers were seen to offer."""

    async def observe(
        self, organization_id: UUID, server_id: str, catalog: Catalog, *, resources: bool, endpoint_revision: int
    ) -> Observation:
        """Write down what a server offers now.

        A generation that is known is not written again; names that disappeared are stamped. ``registered`` becomes ``verified``,
        ``degraded`` becomes ``active``. The revision grows when the hash, the state or ``resources`` differ. Approved tools that left
        are withdrawn for the calls of every run, and those that came back are not any more.

        Args:
            endpoint_revision: of the server as it was dialled.

        Raises:
            NotFound: there is no such server.
            Conflict: it is retired, or its endpoint or authentication is another by now.
        """
        ...


class ServerStore(Revisions, Sightings, Protocol):
    """Servers, their catalogs, and what was approved. Every change is one statement and a compare-and-set.

    ``user_id`` is the authenticated person, whose role in the organization is checked in the same statement; ``None`` is whoever
    administers the database itself.
    """

    async def register(
        self, organization_id: UUID, config: ServerConfig, *, connection_id: UUID | None, user_id: UUID | None
    ) -> StoredServer:
        """Write a server's configuration down.

        Raises:
            Conflict: the name is taken, also by a retired server.
            NotFound: there is no such connection in this organization.
            ServerRefused: the connection is none for the scheme.
            NotPermitted: the person is no admin.
        """
        ...

    async def reconfigure(
        self,
        organization_id: UUID,
        config: ServerConfig,
        *,
        connection_id: UUID | None,
        revision: int,
        user_id: UUID | None,
    ) -> StoredServer:
        """Put another configuration, classification included, in place of the one of ``revision``.

        The state stays as it is, unless endpoint or authentication differ: then it is ``registered`` again, and nothing of it is
        offered, and none of its tools is called, until it is verified and activated anew.

        Raises:
            NotFound: there is no such server.
            Conflict: it has changed since that revision, or is retired.
            ServerRefused: endpoint or authentication differ, and the connection is none for the scheme.
            NotPermitted: the person is no admin.
        """
        ...

    async def classify(
        self,
        organization_id: UUID,
        server_id: str,
        said: Classification | None,
        *,
        remote_name: str | None,
        user_id: UUID | None,
    ) -> StoredServer:
        """Say what the tools of a server do, whatever its connection is worth and whatever is said of its other tools meanwhile.

        Args:
            said: as it was checked. ``None`` ends what was said of the one tool.
            remote_name: the one tool; ``None`` for every tool that has no class of its own.

        Raises:
            NotFound: there is no such server.
            Conflict: it is retired.
            NotPermitted: the person is no admin.
        """
        ...

    async def unreachable(
        self, organization_id: UUID, server_id: str, *, reason: str, degrade_after: int, endpoint_revision: int
    ) -> StoredServer:
        """Count a probe that failed; an active server is degraded at the ``degrade_after``-th in a row.

        Nothing is counted of a server that is retired, or whose endpoint or authentication is another by now.

        Args:
            endpoint_revision: of the server as it was dialled.

        Raises:
            NotFound: there is no such server.
        """
        ...

    async def activate(
        self, organization_id: UUID, server_id: str, *, offered_hash: str, user_id: UUID | None
    ) -> StoredServer:
        """Activate a verified server and approve every tool of the catalog that the person was shown, and no other.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not verified, or offers something else by now.
            NotPermitted: the person is no admin.
        """
        ...

    async def approve(
        self,
        organization_id: UUID,
        server_id: str,
        remote_names: Sequence[str] | None,
        *,
        offered_hash: str,
        user_id: UUID | None,
    ) -> tuple[str, ...]:
        """Approve tools as the catalog of ``offered_hash`` declares them; the remote names that are approved anew by this.

        Args:
            remote_names: which; ``None`` for all of the catalog, which also forgets the approval of withdrawn ones.

        Raises:
            NotFound: there is no such server, or it offers no such tool.
            Conflict: it offers something else by now, or is not active or degraded.
            NotPermitted: the person is no admin.
        """
        ...

    async def retire(self, organization_id: UUID, server_id: str, *, user_id: UUID | None) -> bool:
        """Retire a server for good; ``False`` when it is so already.

        Its tools are withdrawn in the same statement, which the next call of any run sees.

        Raises:
            NotFound: there is no such server.
            NotPermitted: the person is no admin.
        """
        ...

    async def get(self, organization_id: UUID, server_id: str) -> Standing:
        """One server whole.

        Raises:
            NotFound: there is no such server in this organization.
        """
        ...

    async def servers(self, organization_id: UUID) -> list[StoredServer]:
        """The servers of an organization, by server id, the retired ones last."""
        ...

    async def generations(self, organization_id: UUID, server_id: str) -> list[tuple[str, datetime]]:
        """Every catalog of the server that is kept, the newest first: its hash and when it was first seen."""
        ...

    async def declarations(
        self, organization_id: UUID, server_id: str, remote_name: str, *, limit: int = 200
    ) -> list[Declared]:
        """The declarations of one tool that are kept, the newest first; a catalog in which it could not be carried has none.

        Raises:
            NotFound: there is no such server.
        """
        ...

    async def started_for_somebody(self, server_id: str) -> bool:
        """Whether any organization has a stdio server of this name that is not retired; for whoever administers the deployment."""
        ...

    async def due(self, *, limit: int) -> list[tuple[UUID, str]]:
        """Take servers of any organization whose probe is due, longest first.

        An active one is due every hour, a degraded one every five minutes; one that is taken here is not due again for five
        minutes, whoever asks.
        """
        ...
