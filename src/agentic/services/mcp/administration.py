"""What people do with MCP servers: add, classify, verify, activate, compare, approve, retire; and what the deployment does: probe them.

A person's role is checked by the store, in the transaction of the change. What only the deployment may say, that a server is its own or
runs beside the worker, no person of an organization can say here (T4).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from agentic.contract.errors import AgenticError, Conflict, NotPermitted
from agentic.services.mcp.catalog import Catalog, catalog_of
from agentic.services.mcp.config import Classification, Owner, ServerConfig, StdioLaunch
from agentic.services.mcp.config_check import Permits, ServerRefused, classification_faults, read_server
from agentic.services.mcp.deployment import not_started
from agentic.services.mcp.drift import Drift, drift
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.observing import observe
from agentic.services.mcp.ports import ServerStore
from agentic.services.mcp.records import Declared, Observation, ServerState, Standing, StoredServer

DEGRADE_AFTER: Final = 3
"""Probes in a row that fail before new runs do without a server."""
MAX_PROBES: Final = 20
_log = logging.getLogger(__name__)

Look = Callable[[StoredServer], Awaitable[tuple[Catalog, bool]]]
"""Reads what a server offers now, and whether resources too. Raises ``RemoteFailure`` when it cannot be used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """What a sweep found."""

    reached: int
    failed: int


class McpServers:
    """Acts on the MCP servers of organizations.

    Args:
        store: where they are.
        permits: the deployment's egress allow-list, which bounds the addresses that tenants write.
        launches: the stdio servers of this deployment, by server id.
        look: talks to a server.
    """

    def __init__(
        self, *, store: ServerStore, permits: Permits, launches: Mapping[str, StdioLaunch], look: Look
    ) -> None:
        self._store = store
        self._permits = permits
        self._launches = launches
        self._look = look

    async def add(self, organization_id: UUID, raw: Mapping[str, Any], *, user_id: UUID | None) -> StoredServer:
        """Write down a server. Nobody talks to it yet.

        Args:
            raw: fields of ``ServerConfig``. The endpoint of a stdio server is ``{"type": "stdio"}`` and nothing more: its command
                is the deployment's. ``credential_ref`` is the id of a connection.
            user_id: the authenticated person; ``None`` for whoever administers the deployment, who alone adds servers of the operator.

        Raises:
            ServerRefused: it may not stand so; names every fault.
            Conflict: the name is taken, also by a retired server.
            NotFound: there is no such connection in this organization.
            NotPermitted: the person is no admin, or adds a server of the operator.
        """
        config = self._read(raw, user_id)
        return await self._store.register(organization_id, config, connection_id=_connection(config), user_id=user_id)

    async def reconfigure(
        self, organization_id: UUID, raw: Mapping[str, Any], *, revision: int, user_id: UUID | None
    ) -> StoredServer:
        """Put another configuration in place of the one that was seen. One that is dialled differently is registered anew.

        Args:
            raw: as in ``add``, whole.
            revision: of the server as the person saw it.

        Raises:
            ServerRefused: it may not stand so.
            Conflict: it has changed since, or is retired.
            NotFound: there is no such server, or no such connection.
            NotPermitted: the person is no admin, or the server is the operator's.
        """
        config = self._read(raw, user_id)
        before = (await self._store.get(organization_id, config.server_id)).server.config
        _check_owner(before.owner, user_id)
        return await self._store.reconfigure(
            organization_id, config, connection_id=_connection(config), revision=revision, user_id=user_id
        )

    async def classify(
        self,
        organization_id: UUID,
        server_id: str,
        said: Classification | None,
        *,
        remote_name: str | None = None,
        user_id: UUID | None,
    ) -> StoredServer:
        """Say what the tools of a server do. Runs that have one under its former class are refused at their next call of it.

        Args:
            said: the whole classification; ``None`` for the most restrictive one, or for the server's in place of the tool's own.
            remote_name: the one tool it is about; ``None`` for every tool that has none of its own.

        Raises:
            ServerRefused: the parts of it do not go together.
            NotFound: there is no such server.
            Conflict: it is retired.
            NotPermitted: the person is no admin.
        """
        if faults := tuple(classification_faults(said or Classification(), remote_name)):
            raise ServerRefused(faults)
        if remote_name is None:
            said = said or Classification()
        return await self._store.classify(organization_id, server_id, said, remote_name=remote_name, user_id=user_id)

    async def verify(self, organization_id: UUID, server_id: str) -> Observation:
        """Talk to a server and write down what it offers.

        Raises:
            RemoteFailure: it cannot be used, which is counted; ``stderr`` holds the end of what its process said, redacted.
            NotFound: there is no such server.
            Conflict: it is retired, or its endpoint or authentication was changed meanwhile.
        """
        server = (await self._store.get(organization_id, server_id)).server
        if server.state is ServerState.RETIRED:
            raise Conflict(f"the server {server_id} is retired, which is for good; add another one")
        try:
            catalog, resources = await self._looked(server)
        except RemoteFailure as failure:
            await self._store.unreachable(
                organization_id,
                server_id,
                reason=str(failure.trouble),
                degrade_after=DEGRADE_AFTER,
                endpoint_revision=server.endpoint_revision,
            )
            raise
        return await observe(self._store, server, catalog, resources=resources)

    async def activate(
        self, organization_id: UUID, server_id: str, *, offered_hash: str, user_id: UUID | None
    ) -> StoredServer:
        """Let new runs be offered the tools that the person was shown: activate the server, and approve all of that catalog.

        Args:
            offered_hash: of the catalog that was shown.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not verified, or offers something else by now.
            NotPermitted: the person is no admin.
        """
        return await self._store.activate(organization_id, server_id, offered_hash=offered_hash, user_id=user_id)

    async def diff(self, organization_id: UUID, server_id: str) -> Drift:
        """What a server offers beside what was approved of it, as it was seen last. Its lines are the server's text.

        Raises:
            NotFound: there is no such server.
        """
        standing = await self._store.get(organization_id, server_id)
        return drift(catalog_of(tuple(standing.approved.values())), standing.offered)

    async def approve(
        self,
        organization_id: UUID,
        server_id: str,
        remote_names: Sequence[str] | None,
        *,
        offered_hash: str,
        user_id: UUID | None,
    ) -> tuple[str, ...]:
        """Approve tools as they are declared now; new runs have them. The remote names that were not approved so before.

        Args:
            remote_names: which; ``None`` for all, which also ends the approval of tools that left.
            offered_hash: of the catalog that was shown, such as ``Drift.new_hash``.

        Raises:
            NotFound: there is no such server, or it offers no such tool.
            Conflict: it offers something else by now, or is neither active nor degraded.
            NotPermitted: the person is no admin.
        """
        return await self._store.approve(
            organization_id, server_id, remote_names, offered_hash=offered_hash, user_id=user_id
        )

    async def retire(self, organization_id: UUID, server_id: str, *, user_id: UUID | None) -> bool:
        """Retire a server for good; ``False`` when it is so already. The next call of any run to it is refused.

        Raises:
            NotFound: there is no such server.
            NotPermitted: the person is no admin.
        """
        return await self._store.retire(organization_id, server_id, user_id=user_id)

    async def started_for_somebody(self, server_id: str) -> bool:
        """Whether any organization has a stdio server of this name that is not retired.

        Tells of no organization which; for whoever administers the deployment, to whom its commands and their folders belong.
        """
        return await self._store.started_for_somebody(server_id)

    async def servers(self, organization_id: UUID) -> list[StoredServer]:
        """The servers of an organization, by name, the retired ones last."""
        return await self._store.servers(organization_id)

    async def server(self, organization_id: UUID, server_id: str) -> Standing:
        """One server with what it offers and what was approved of that.

        Raises:
            NotFound: there is no such server in this organization.
        """
        return await self._store.get(organization_id, server_id)

    async def generations(self, organization_id: UUID, server_id: str) -> list[tuple[str, datetime]]:
        """The catalogs of a server that are kept, the newest first: hash, and when it was first seen."""
        return await self._store.generations(organization_id, server_id)

    async def history(
        self, organization_id: UUID, server_id: str, remote_name: str, *, limit: int = 200
    ) -> list[Declared]:
        """The declarations of one tool that are kept, the newest first.

        The contract of a run names the declaration that its calls were validated against by its hash, which is in one of these.

        Raises:
            NotFound: there is no such server.
        """
        return await self._store.declarations(organization_id, server_id, remote_name, limit=limit)

    async def probe_due(self, *, limit: int = MAX_PROBES) -> Probed:
        """Verify the servers of all organizations whose probe is due; none of them keeps another from its probe.

        One that cannot be reached is degraded at the third time in a row, and active again when it answers.
        """
        due = await self._store.due(limit=limit)
        reached = await asyncio.gather(*(self._probe(organization_id, server_id) for organization_id, server_id in due))
        return Probed(reached=sum(reached), failed=len(reached) - sum(reached))

    async def _probe(self, organization_id: UUID, server_id: str) -> bool:
        try:
            await self.verify(organization_id, server_id)
        except AgenticError as error:
            _log.warning("the MCP server %s of %s was not reached: %s", server_id, organization_id, error)
            return False
        except Exception:  # noqa: BLE001 - a fault with one server is the next sweep's to meet again, and no other server's
            _log.exception("the MCP server %s of %s could not be probed", server_id, organization_id)
            return False
        return True

    async def _looked(self, server: StoredServer) -> tuple[Catalog, bool]:
        if server.launch_fault is not None:
            raise RemoteFailure(Trouble.NOT_STARTED, server.launch_fault)
        return await self._look(server)

    def _read(self, raw: Mapping[str, Any], user_id: UUID | None) -> ServerConfig:
        operators = raw.get("owner") == Owner.OPERATOR
        # an address of the deployment's own is permitted by being configured
        config = read_server(self._launched(raw), permits=_anything if operators else self._permits)
        _check_owner(config.owner, user_id)
        _connection(config)
        return config

    def _launched(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        endpoint = raw.get("endpoint")
        if not isinstance(endpoint, Mapping) or endpoint.get("type") != "stdio":
            return raw
        if endpoint.keys() != {"type"}:
            raise ServerRefused(
                ("how a stdio server is started stands in the deployment's file of servers, and nowhere else",)
            )
        server_id = str(raw.get("server_id"))
        launch = self._launches.get(server_id)
        if launch is None:
            raise ServerRefused((not_started(self._launches, server_id) or "it cannot be started here",))
        return {**raw, "endpoint": launch.model_dump(mode="json")}


def _anything(_: object) -> bool:
    return True


def _check_owner(owner: Owner, user_id: UUID | None) -> None:
    if owner is Owner.OPERATOR and user_id is not None:
        raise NotPermitted("a server of the operator is configured by whoever administers the deployment")


def _connection(config: ServerConfig) -> UUID | None:
    reference = config.authentication.credential_ref
    if reference is None:
        return None
    try:
        return UUID(reference)
    except ValueError:
        raise ServerRefused(
            ("credential_ref is the id of a connection, such as 'agentic connections list' shows",)
        ) from None
