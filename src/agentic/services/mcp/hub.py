"""The MCP servers of one process: what the database says of an organization's servers becomes tools that runs can have.

The database decides which tools there are, and a server what it still offers; this is a cache of the one and the connections to the
other. It is asked before a run starts and before each of its segments. Everything is kept by organization, so that two with one server
id share neither a connection nor a credential (T1).
"""

import asyncio
import logging
import ssl
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID

from agentic.contract.clock import Clock, SystemClock
from agentic.contract.errors import AgenticError, Conflict, NotFound
from agentic.services.mcp.asking import RunMarks, connected
from agentic.services.mcp.authentication import Credentials
from agentic.services.mcp.catalog import Catalog, RemoteTool
from agentic.services.mcp.config import ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import Permits
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.observing import observe
from agentic.services.mcp.offering import handler_of, offered
from agentic.services.mcp.permits import permits_of
from agentic.services.mcp.ports import Revisions, Sightings
from agentic.services.mcp.records import ServerState, Standing, StoredServer
from agentic.services.mcp.server_events import Teller
from agentic.services.mcp.servers import RemoteServer, Seen
from agentic.services.mcp.slots import Slots
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.ports import ToolHandler
from agentic.services.tools.registry import ToolRegistry

_log = logging.getLogger(__name__)
_IN_USE = (ServerState.ACTIVE, ServerState.DEGRADED)


class HubStore(Revisions, Sightings, Protocol):
    """What a hub needs of the database."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Joined:
    """One server as this process has it."""

    stored: StoredServer
    remote: RemoteServer
    specs: tuple[ToolSpec, ...]
    withheld: frozenset[str]
    """Names that are there for runs which have them alone."""
    handler: Callable[[ToolSpec], ToolHandler]


class ServerHub:
    """Keeps the registry at what the database says, and the connections behind it.

    Args:
        store: what there is; told when a server shows something else than it knows.
        registry: where tools are registered.
        launches: the stdio servers of this deployment, by server id, as they are now.
        vault: the credentials of one organization. One that may not be used is a ``RemoteFailure``.
        permits: the deployment's egress allow-list.
        slots: for everything this process opens.
        warm: whether the servers of a run are opened as soon as it is led, and not by its first call.
        tls: trust of a private authority; ``None`` trusts the packaged public ones.
    """

    def __init__(
        self,
        *,
        store: HubStore,
        registry: ToolRegistry,
        launches: Mapping[str, StdioLaunch],
        vault: Callable[[UUID], Credentials],
        permits: Permits,
        marks: RunMarks,
        slots: Slots | None = None,
        warm: bool = True,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._launches = launches
        self._vault = vault
        self._permits = permits
        self._marks = marks
        whole = slots or Slots()
        self._slots: defaultdict[UUID, Slots] = defaultdict(whole.share)
        self._warm = warm
        self._clock = clock or SystemClock()
        self._tls = tls
        self._joined: dict[UUID, dict[str, _Joined]] = {}
        self._alone: defaultdict[UUID, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._renewing: set[asyncio.Task[None]] = set()
        self._warming: dict[RemoteServer, asyncio.Task[None]] = {}
        self._leaving: set[RemoteServer] = set()
        self._closed = False

    async def refresh(self, organization_id: UUID) -> None:
        """Bring an organization's tools to what the database says; one statement when nothing changed, and no server is talked to.

        Raises:
            StorageUnavailable: the database does not answer, so nobody can say which tools there are.
        """
        if await self._moved(organization_id):
            task = asyncio.create_task(self._renew(organization_id))
            self._renewing.add(task)
            task.add_done_callback(self._renewed)
            await asyncio.shield(task)  # half of it would be tools that nobody knows, so it goes on without who gave up

    def warm(self, organization_id: UUID, *, run_id: UUID, tools: Iterable[str]) -> None:
        """Open the servers of these tools beside what happens: those in use that are not open, and that the run has not given up on."""
        if not self._warm or self._closed:
            return
        named = set(tools)
        for each in self._joined.get(organization_id, {}).values():
            used = each.stored.state is ServerState.ACTIVE and not named.isdisjoint(spec.name for spec in each.specs)
            if used and not each.remote.open and each.remote not in self._warming:
                task = self._warming[each.remote] = asyncio.create_task(self._opened(each, run_id))
                task.add_done_callback(partial(self._warmed, each.remote))

    async def look(self, server: StoredServer) -> tuple[Catalog, bool]:
        """What a server offers now, and whether resources too, read for this.

        An open connection of this very configuration is used; another one is opened for the look alone.

        Raises:
            RemoteFailure: it cannot be used, or does not show what it offers.
        """
        joined = self._joined.get(server.organization_id, {}).get(server.server_id)
        if joined is not None and joined.remote.open and _same_way(joined.stored, server):
            connection = await joined.remote.look()
            return connection.catalog, connection.resources
        remote = self._remote(server, seen=None)
        self._leaving.add(remote)
        try:
            connection = await remote.look()
            return connection.catalog, connection.resources
        finally:
            await remote.aclose()

    async def aclose(self) -> None:
        """Close every connection for good; nothing that was started is left. May be called again after a failure.

        Raises:
            SessionNotClosed: a server did not end; the others have.
        """
        self._closed = True
        for task in self._warming.values():
            task.cancel()
        if begun := {*self._renewing, *self._warming.values()}:
            await asyncio.wait(begun)
        remotes = {*self._leaving, *(each.remote for joined in self._joined.values() for each in joined.values())}
        ends = await asyncio.gather(*(remote.aclose() for remote in remotes), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end

    async def _opened(self, joined: _Joined, run_id: UUID) -> None:
        server_id = joined.stored.server_id
        try:
            if not await self._marks.unauthorized(run_id=run_id, server_id=server_id):
                await connected(joined.remote, run_id=run_id, marks=self._marks)
        except AgenticError as failure:
            _log.info("%s could not be opened before it is called: %s", server_id, failure)

    def _warmed(self, remote: RemoteServer, task: asyncio.Task[None]) -> None:
        del self._warming[remote]
        if not task.cancelled():
            task.exception()  # a fault of ours is the call's to meet

    async def _moved(self, organization_id: UUID) -> tuple[list[str], set[str]] | None:
        """The servers that are others than this process has, and those that left; ``None`` when all is as it was."""
        revisions = await self._store.revisions(organization_id)
        known = self._joined.get(organization_id, {})
        moved = [server_id for server_id, at in revisions.items() if self._another(known.get(server_id), at)]
        left = set(known.keys() - revisions.keys())
        return (moved, left) if moved or left else None

    def _another(self, joined: _Joined | None, revision: int) -> bool:
        """Whether a server is another than this process has, in its row or in the deployment's file."""
        if joined is None or joined.stored.revision != revision:
            return True
        endpoint = joined.stored.config.endpoint
        if not isinstance(endpoint, StdioLaunch):
            return False
        launch = self._launches.get(joined.stored.server_id)
        return launch != endpoint if joined.stored.launchable else launch is not None

    async def _renew(self, organization_id: UUID) -> None:
        async with self._alone[organization_id]:  # an older answer must not come in behind a newer one
            if found := await self._moved(organization_id):
                moved, left = found
                standings = await self._store.standings(organization_id, moved) if moved else []
                await self._register(organization_id, standings, without=left)
        self._leaving = {each for each in self._leaving if not each.gone}

    def _renewed(self, task: asyncio.Task[None]) -> None:
        self._renewing.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited for it may have left

    async def _register(
        self, organization_id: UUID, standings: Iterable[Standing], *, without: Collection[str]
    ) -> None:
        """All tools of the organization as one batch: names that clash across servers cost both, whichever came first (N1)."""
        before = self._joined.get(organization_id, {})
        now = {server_id: each for server_id, each in before.items() if server_id not in without}
        for standing in standings:
            server_id = standing.server.server_id
            now.pop(server_id, None)
            if standing.server.state in _IN_USE:
                now[server_id] = self._join(standing, before.get(server_id))
        made = {spec.name: each.handler for each in now.values() for spec in each.specs}
        # hundreds of schemas are checked, beside the event loop, which renews the leases of runs
        report = await asyncio.to_thread(
            self._registry.register_dynamic,
            [spec for _, each in sorted(now.items()) for spec in each.specs],
            "mcp",
            organization_id=organization_id,
            handler=lambda spec: made[spec.name](spec),
            replacing=[spec.name for each in before.values() for spec in each.specs],
            withheld=frozenset[str]().union(*(each.withheld for each in now.values())),
        )
        for name, reason in report.rejected.items():
            _log.warning("%s is not registered in organization %s: %s", name, organization_id, reason)
        self._joined[organization_id] = now
        staying = {each.remote for each in now.values()}
        for remote in {each.remote for each in before.values()} - staying:
            remote.retire()
            self._leaving.add(remote)

    def _join(self, standing: Standing, before: _Joined | None) -> _Joined:
        server = standing.server
        same = before is not None and _same_way(before.stored, server)
        remote = (
            before.remote if before is not None and same else self._remote(server, seen=partial(self._seen, server))
        )
        current, waiting = _tools(standing)
        catalog = Catalog(tools=(*current, *waiting), catalog_hash=standing.offered.catalog_hash)
        specs = tuple(
            offered(
                server.config,
                catalog,
                connection_id=server.connection_id or server.id,
                resources=server.resources,
            )
        )
        away = specs if server.state is ServerState.DEGRADED else waiting
        return _Joined(
            stored=server,
            remote=remote,
            specs=specs,
            withheld=frozenset(each.name for each in away),
            handler=handler_of(remote, catalog, marks=self._marks),
        )

    def _remote(self, server: StoredServer, *, seen: Seen | None) -> RemoteServer:
        remote = RemoteServer(
            server.config,
            vault=self._vault(server.organization_id),
            permits=permits_of(server.config, self._permits),
            slots=self._slots[server.organization_id],
            admits=partial(self._admit, server) if server.config.authentication.credential_ref else None,
            told=Teller(organization_id=server.organization_id, server_id=server.server_id),
            seen=seen,
            launch_fault=server.launch_fault,
            clock=self._clock,
            tls=self._tls,
        )
        if self._closed:
            remote.retire()
        return remote

    async def _admit(self, server: StoredServer) -> None:
        """A session lives on a credential that was read when it began; one that was revoked since is not used again."""
        await self._vault(server.organization_id).resolve(server.config.authentication.credential_ref or "")

    async def _seen(self, server: StoredServer, catalog: Catalog, resources: bool) -> None:
        """Tell the database what it does not know yet. Other processes hear of it there, this one does at its next look.

        Args:
            server: as it was dialled.
        """
        joined = self._joined.get(server.organization_id, {}).get(server.server_id)
        if joined is not None and _known(joined.stored, catalog, resources=resources):
            return
        try:
            await observe(self._store, server, catalog, resources=resources)
        except (Conflict, NotFound) as other:
            raise RemoteFailure(Trouble.CONNECT, f"{server.server_id}: {other}") from other


def _tools(standing: Standing) -> tuple[tuple[RemoteTool, ...], tuple[RemoteTool, ...]]:
    """What a new run may have, and what is there beside it for runs that have it already.

    The latter are changed tools as they are declared now, so that a run with another declaration is told so, and tools that left as they
    were approved, so that a definition which names one still starts.
    """
    current = standing.unchanged
    taken = {tool.name for tool in current}
    others: dict[str, RemoteTool] = {}
    for tool in (*standing.quarantined, *(standing.approved[name] for name in standing.withdrawn)):
        if tool.name not in taken:
            others.setdefault(tool.name, tool)
    return current, tuple(others.values())


def _same_way(one: StoredServer, other: StoredServer) -> bool:
    """Whether a connection that was made for one serves the other."""
    return (one.endpoint_revision, one.launchable, _way(one.config)) == (
        other.endpoint_revision,
        other.launchable,
        _way(other.config),
    )


def _way(config: ServerConfig) -> tuple[object, ...]:
    return config.owner, config.endpoint, config.authentication, config.timeouts


def _known(stored: StoredServer, catalog: Catalog, *, resources: bool) -> bool:
    return (stored.offered_hash, stored.resources, stored.state) == (
        catalog.catalog_hash,
        resources,
        ServerState.ACTIVE,
    )
