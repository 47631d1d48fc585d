"""Routes of an organization's MCP servers: its admins add, classify, verify, activate, compare, approve and retire them; members read.

A server that is added here is the organization's own: somewhere else, over HTTPS, where the deployment's allow-list lets it. One of the
deployment is shown, and what of it runs are offered is decided here; where it is and what its tools do is said at the deployment's command
line (docs/mcp.md). Authority is the service's, in the deciding statement, but of what has none: to look at a server.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from agentic.api.access import Access
from agentic.api.auth import Caller
from agentic.api.errors import BadRequest
from agentic.api.looks import LookLimits, Looks
from agentic.api.mcp_views import approved_view, declared_view, drift_view, server_view, standing_view
from agentic.api.ports import ApiPorts
from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.contract.values import Value
from agentic.services.mcp.config import (
    Authentication,
    AuthScheme,
    Classification,
    HttpEndpoint,
    Owner,
    ServerConfig,
    Timeouts,
)
from agentic.services.mcp.records import ServerState, Standing, StoredServer

_URL_CHARS = 2_048
_TOOLS = 1_000
"""A server lists as many at most."""
RemoteName = Annotated[str, Field(min_length=1, max_length=128)]
Url = Annotated[str, Field(min_length=1, max_length=_URL_CHARS)]


class SignIn(Value):
    """How we say who we are there. The secret stays in its connection (docs/connections.md)."""

    scheme: AuthScheme = AuthScheme.NONE
    connection_id: UUID | None = None
    name: str | None = Field(default=None, max_length=64)
    """Of the header."""
    token_endpoint: Url | None = None
    token_scopes: tuple[Annotated[str, Field(max_length=256)], ...] = Field(default=(), max_length=50)


class NewServer(Value):
    """A server of the organization's own. Whose it is comes from the token, and there is no way to write another kind of server here."""

    server_id: str = Field(min_length=1, max_length=64)
    """The word its tools carry in their names."""
    url: Url
    authentication: SignIn = SignIn()
    connect_s: float = Field(default=10, gt=0, le=30)
    """From the first byte to the end of the handshake."""
    request_s: float = Field(default=30, gt=0, le=120)
    """Of one request."""
    classification: Classification = Classification()
    """Of every tool that ``per_tool`` does not name."""
    per_tool: dict[RemoteName, Classification] = Field(default_factory=dict, max_length=_TOOLS)
    max_output_bytes: int | None = Field(default=None, ge=2, le=32 * 1024)

    def config(self) -> ServerConfig:
        """As the service knows it. Whether it may stand is the service's to say."""
        auth = self.authentication
        return ServerConfig(
            server_id=self.server_id,
            owner=Owner.TENANT,
            endpoint=HttpEndpoint(url=self.url),
            authentication=Authentication(
                scheme=auth.scheme,
                credential_ref=None if auth.connection_id is None else str(auth.connection_id),
                name=auth.name,
                token_endpoint=auth.token_endpoint,
                token_scopes=auth.token_scopes,
            ),
            timeouts=Timeouts(connect_s=self.connect_s, request_s=self.request_s),
            classification=self.classification,
            per_tool=self.per_tool,
            max_output_bytes=self.max_output_bytes,
        )


class Classified(Value):
    """What the tools of a server do, said whole."""

    classification: Classification | None
    """``null`` for the most restrictive one, or for the server's in place of the tool's own."""
    remote_name: RemoteName | None = None
    """The one tool it is about; left out, every tool that has no class of its own."""


class Shown(Value):
    """The catalog that a person has seen, so that nothing else is activated."""

    offered_hash: str = Field(pattern=r"^[a-z0-9]{1,8}:[0-9a-f]{64}$")


class ToApprove(Shown):
    """Tools of the catalog that a person has seen."""

    remote_names: tuple[RemoteName, ...] | None = Field(default=None, min_length=1, max_length=_TOOLS)
    """Left out, all of the catalog; the approval of tools that left it ends then."""


def mcp_server_routes(ports: ApiPorts, access: Access, limits: LookLimits | None = None) -> APIRouter:
    """Build the routes."""
    router = APIRouter(prefix="/v1/mcp/servers")
    looks = Looks(limits or LookLimits())
    mcp = ports.mcp

    @router.get("")
    async def listed(caller: Annotated[Caller, Depends(access)]) -> JSONResponse:
        found = await mcp.servers(caller.organization_id)
        return JSONResponse({"servers": [server_view(server) for server in found]})

    @router.post("")
    async def add(caller: Annotated[Caller, Depends(access)], body: NewServer) -> JSONResponse:
        config = body.config()
        try:
            added = await mcp.add(caller.organization_id, config.model_dump(mode="json"), user_id=caller.user_id)
        except Conflict:
            server = (await mcp.server(caller.organization_id, config.server_id)).server
            if server.state is ServerState.RETIRED or server.config != config:
                raise
            return JSONResponse({**server_view(server), "created": False})  # the same request again
        return JSONResponse({**server_view(added), "created": True}, status_code=201)

    @router.get("/{server_id}")
    async def show(caller: Annotated[Caller, Depends(access)], server_id: str) -> JSONResponse:
        return JSONResponse(standing_view(await mcp.server(caller.organization_id, server_id)))

    @router.get("/{server_id}/declarations")
    async def declarations(
        caller: Annotated[Caller, Depends(access)],
        server_id: str,
        remote_name: Annotated[str, Query(min_length=1, max_length=128)],
        limit: Annotated[int, Query(ge=1, le=20)] = 1,
    ) -> JSONResponse:
        found = await mcp.history(caller.organization_id, server_id, remote_name, limit=limit)
        return JSONResponse({"declarations": [declared_view(each) for each in found]})

    @router.patch("/{server_id}")
    async def classify(caller: Annotated[Caller, Depends(access)], server_id: str, body: Classified) -> JSONResponse:
        standing = await mcp.server(caller.organization_id, server_id)
        _check_own(standing.server)
        if body.remote_name is not None and not standing.knows(body.remote_name):
            raise BadRequest("remote_name: the server has shown no tool of this name; verify it, or correct the name")
        server = await mcp.classify(
            caller.organization_id, server_id, body.classification, remote_name=body.remote_name, user_id=caller.user_id
        )
        return JSONResponse(server_view(server))

    @router.post("/{server_id}/verify")
    async def verify(caller: Annotated[Caller, Depends(access)], server_id: str) -> JSONResponse:
        _check_own((await mcp.server(caller.organization_id, server_id)).server)
        await _check_admin(caller)
        with looks.one(caller.organization_id):
            seen = await mcp.verify(caller.organization_id, server_id)
        standing = await mcp.server(caller.organization_id, server_id)
        return JSONResponse({**standing_view(standing), "previous_hash": seen.previous_hash})

    @router.post("/{server_id}/activate")
    async def activate(caller: Annotated[Caller, Depends(access)], server_id: str, body: Shown) -> JSONResponse:
        try:
            server = await mcp.activate(
                caller.organization_id, server_id, offered_hash=body.offered_hash, user_id=caller.user_id
            )
        except Conflict:
            standing = await mcp.server(caller.organization_id, server_id)
            if not _stands(standing, body.offered_hash):
                raise
            server = standing.server  # the same request again
        return JSONResponse(server_view(server))

    @router.get("/{server_id}/diff")
    async def diff(caller: Annotated[Caller, Depends(access)], server_id: str) -> JSONResponse:
        return JSONResponse(drift_view(await mcp.diff(caller.organization_id, server_id)))

    @router.post("/{server_id}/approve")
    async def approve(caller: Annotated[Caller, Depends(access)], server_id: str, body: ToApprove) -> JSONResponse:
        await mcp.server(caller.organization_id, server_id)  # tells a missing server from a missing tool
        try:
            anew = await mcp.approve(
                caller.organization_id,
                server_id,
                body.remote_names,
                offered_hash=body.offered_hash,
                user_id=caller.user_id,
            )
        except NotFound:  # names them, and they may be a server's words
            raise NotFound(
                "the server does not offer each of these tools; look at it again; none was approved"
            ) from None
        return JSONResponse(approved_view(server_id, anew))

    @router.post("/{server_id}/retire")
    async def retire(caller: Annotated[Caller, Depends(access)], server_id: str) -> JSONResponse:
        changed = await mcp.retire(caller.organization_id, server_id, user_id=caller.user_id)
        return JSONResponse({"server_id": server_id, "state": str(ServerState.RETIRED), "changed": changed})

    async def _check_admin(caller: Caller) -> None:
        role = await ports.role(caller.organization_id, caller.user_id)
        if role is None or not role.holds(Role.ADMIN):
            raise NotPermitted(
                "verifying MCP servers takes the role admin in their organization; ask an admin to do it"
            )

    return router


def _check_own(server: StoredServer) -> None:
    if server.config.owner is Owner.OPERATOR:
        raise NotPermitted(
            f"the server {server.server_id} is the deployment's, whose command line classifies and verifies it; it is probed by itself"
        )


def _stands(standing: Standing, offered_hash: str) -> bool:
    """Whether a server is in use with all of a catalog, and nothing else, approved."""
    server = standing.server
    in_use = server.state in (ServerState.ACTIVE, ServerState.DEGRADED) and server.offered_hash == offered_hash
    return in_use and not (standing.quarantined or standing.waiting or standing.withdrawn)
