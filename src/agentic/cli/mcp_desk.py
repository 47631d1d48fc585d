"""The MCP servers of one organization, for a command: their life cycle, their rows, and a way to talk to one and leave nothing behind."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from agentic.bootstrap.credentials import OrganizationCredentials
from agentic.cli.mcp_fetching import CUT_OFF, drop_unpacked, fetches, with_time_to_fetch
from agentic.cli.mcp_homes import Left, remove_home
from agentic.cli.mcp_remedies import told
from agentic.cli.output import say
from agentic.cli.records import Records, acting, home_of, with_records
from agentic.contract.errors import AgenticError, NotPermitted
from agentic.local.program import command
from agentic.services.connections.credential_reader import CredentialReader
from agentic.services.connections.envelope import VaultKeys
from agentic.services.mcp.administration import McpServers
from agentic.services.mcp.authentication import Credentials
from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.config_check import Permits
from agentic.services.mcp.deployment import LaunchFile
from agentic.services.mcp.failures import RemoteFailure
from agentic.services.mcp.permits import permits_from_environment, permits_of
from agentic.services.mcp.records import StoredServer
from agentic.services.mcp.server_events import Teller
from agentic.services.mcp.servers import RemoteServer
from agentic.services.mcp.slots import Slots
from agentic.storage.connection_store import PostgresConnectionStore
from agentic.storage.server_store import PostgresServerStore

T = TypeVar("T")


class Unusable(AgenticError):
    """A server that could not be used, in words for the person at the command line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerDesk:
    """One organization's servers, and the person who works on them."""

    records: Records
    servers: McpServers
    permits: Permits
    folder: Path | None
    again: str
    """The command line as the person types it."""
    launches: LaunchFile
    """The deployment's stdio servers."""
    credentials: Credentials

    @property
    def file(self) -> Path:
        """Of the deployment's stdio servers."""
        return self.launches.path

    @property
    def organization_id(self) -> UUID:
        """Whose servers."""
        return self.records.organization_id

    def acting(self, person: UUID | None) -> UUID:
        """Who changes servers here."""
        return acting(self.folder, person)

    def home(self, server_id: str) -> Path:
        """The HOME that a stdio server has in this project's folder, if it has one."""
        return home_of(self.folder).server_home(server_id)

    def home_is_there(self, server_id: str) -> bool:
        """Whether something stands at that place."""
        return os.path.lexists(self.home(server_id))

    async def remove_home(self, server_id: str) -> Left | None:
        """Remove the HOME of a retired server; why it stays, if it does."""
        if not self.home_is_there(server_id):
            return None
        if await self.servers.started_for_somebody(server_id):
            return Left.OTHERS
        return await asyncio.to_thread(
            remove_home, self.home(server_id), server_id=server_id, launches={**self.launches}
        )

    @asynccontextmanager
    async def remote(self, server: StoredServer) -> AsyncIterator[RemoteServer]:
        """The server itself, and nothing of it after the block.

        A start that may be a download has the time for one; after one that was cut off the next begins anew.
        """
        config = with_time_to_fetch(server.config)
        fetching = server.launchable and fetches(config)
        if fetching:
            say(
                f"starting {server.server_id}; what is not here yet is downloaded, in {config.opens_within_s:g} s at most"
            )
        remote = RemoteServer(
            config,
            vault=self.credentials,
            permits=permits_of(server.config, self.permits),
            slots=Slots(),
            told=Teller(organization_id=server.organization_id, server_id=server.server_id),
            launch_fault=server.launch_fault,
        )
        cut_off = False
        try:
            yield remote
        except RemoteFailure as failure:
            cut_off = failure.trouble in CUT_OFF
            raise
        except asyncio.CancelledError:
            cut_off = not remote.open
            raise
        finally:
            await remote.aclose()
            if fetching and cut_off and drop_unpacked(self.home(server.server_id)):
                say(f"what was downloaded for {server.server_id} may be incomplete and was thrown away; try once more")

    async def verify(self, server_id: str) -> None:
        """Look at a server and write down what it offers.

        Raises:
            Unusable: it cannot be used; says what a person does about it.
        """
        try:
            await self.servers.verify(self.organization_id, server_id)
        except RemoteFailure as failure:
            raise Unusable(f"{server_id} cannot be used: {told(failure, server_id)}") from failure


def at_desk(folder: Path | None, organization: UUID | None, act: Callable[[ServerDesk], Awaitable[T]]) -> T:
    """Open the database, and run ``act`` on the servers.

    Args:
        folder: of the embedded database and the deployment's file; ``None`` is the default one.
        organization: whose servers; ``None`` is the identity's.

    Raises:
        ProgramFault: there is no database, or the allow-list cannot be used.
        StorageUnavailable: the database does not answer.
    """
    home = home_of(folder)
    home.check()
    launches = LaunchFile(home.mcp_servers, missing_ok=True)
    permits = permits_from_environment()

    async def with_servers(records: Records) -> T:
        connections = PostgresConnectionStore(records.database)
        credentials = OrganizationCredentials(
            CredentialReader(store=connections, keys=VaultKeys.from_environment()), records.organization_id
        )

        async def look(server: StoredServer) -> tuple[Catalog, bool]:
            async with desk.remote(server) as remote:
                connection = await remote.look()
                return connection.catalog, connection.resources

        desk = ServerDesk(
            records=records,
            servers=McpServers(
                store=PostgresServerStore(records.database, launches), permits=permits, launches=launches, look=look
            ),
            permits=permits,
            launches=launches,
            credentials=credentials,
            folder=folder,
            again=command(folder),
        )
        try:
            return await act(desk)
        except NotPermitted as refused:
            if await records.members.list(records.organization_id):
                raise
            who = home.identity().user_id
            raise NotPermitted(
                f"{refused}; nobody is a member yet, and '{command(folder)} members put {who} admin' makes the first"
            ) from refused

    return with_records(folder, organization, with_servers)
