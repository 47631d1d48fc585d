"""Putting a new server down: its command in the deployment's file, its row in the database, and a first look."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from agentic.cli.mcp_desk import ServerDesk, Unusable
from agentic.cli.mcp_views import server_view, tool_views
from agentic.contract.errors import AgenticError, Conflict, NotFound
from agentic.contract.json_types import JsonArray, JsonObject
from agentic.contract.principal import Role
from agentic.local.home import DATABASE_URL
from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.deployment import put_launch
from agentic.services.mcp.records import ServerState


class AddedUnusable(AgenticError):
    """The server was added and cannot be used."""

    def __init__(self, message: str, server: JsonObject) -> None:
        super().__init__(message)
        self.server = server


async def put_down(
    desk: ServerDesk, raw: Mapping[str, Any], launch: StdioLaunch | None, *, person: UUID | None, verify: bool
) -> tuple[JsonObject, JsonArray]:
    """Add the server; how it stands then, and what it offers.

    A process that dies after the file was written leaves a command that no organization uses; the same command line goes on from there.

    Args:
        raw: fields of ``ServerConfig``.
        launch: of a stdio server.
        person: who adds it, where that is asked for; a server of the deployment is added by whoever is at its command line.
        verify: whether to look at it.

    Raises:
        ServerRefused: it may not stand so.
        Conflict: the name is taken, here or in the file.
        AddedUnusable: it stands, and cannot be used.
    """
    await _first_member(desk)
    name = str(raw["server_id"])
    user_id = _who(desk, raw, person)
    wrote = launch is not None and _write(desk, name, launch)
    try:
        await desk.servers.add(desk.organization_id, raw, user_id=user_id)
    except AgenticError:
        if wrote and not await _is_started(desk, name):
            put_launch(desk.file, name, None)
        raise
    return await _looked_at(desk, name, verify=verify)


async def put_otherwise(
    desk: ServerDesk,
    name: str,
    changes: Mapping[str, Any],
    launch: StdioLaunch | None,
    *,
    person: UUID | None,
    verify: bool,
) -> tuple[JsonObject, JsonArray]:
    """Configure a server otherwise; how it stands then, and what it offers.

    Args:
        changes: fields of ``ServerConfig`` in place of those it has; ``timeouts`` are put over those it has.
        launch: another command, of a stdio server, in the file: for every organization that has the server.
        person: as in ``put_down``.
        verify: whether to look at it.

    Raises:
        ServerRefused: it may not stand so.
        NotFound: there is no such server.
        Conflict: it is retired, or was changed at the same time.
        AddedUnusable: it stands, and cannot be used.
    """
    server = (await desk.servers.server(desk.organization_id, name)).server
    before = server.config.model_dump(mode="json")
    if isinstance(server.config.endpoint, StdioLaunch):
        before["endpoint"] = {"type": "stdio"}
    elif launch is not None:
        raise Conflict(f"{name} is reached over HTTP; add a server of another name for a command")
    if changes:
        waits = {**before["timeouts"], **changes.get("timeouts", {})}
        raw = {**before, **changes, "timeouts": waits}
        await desk.servers.reconfigure(
            desk.organization_id, raw, revision=server.revision, user_id=_who(desk, raw, person)
        )
    if launch is not None:
        put_launch(desk.file, name, launch)
    return await _looked_at(desk, name, verify=verify)


async def _looked_at(desk: ServerDesk, name: str, *, verify: bool) -> tuple[JsonObject, JsonArray]:
    if verify:
        try:
            await desk.verify(name)
        except Unusable as unusable:
            server = server_view((await desk.servers.server(desk.organization_id, name)).server)
            message = f"{name} is {server['state']}; {unusable}\nwhen that is mended: {desk.again} mcp verify {name}"
            raise AddedUnusable(message, server) from unusable
    standing = await desk.servers.server(desk.organization_id, name)
    return server_view(standing.server), tool_views(standing)


async def _is_started(desk: ServerDesk, name: str) -> bool:
    """Whether the organization has this server already, as when the same command line was there first: then its command stays."""
    try:
        server = (await desk.servers.server(desk.organization_id, name)).server
    except NotFound:
        return False
    return isinstance(server.config.endpoint, StdioLaunch) and server.state is not ServerState.RETIRED


def _who(desk: ServerDesk, raw: Mapping[str, Any], person: UUID | None) -> UUID | None:
    """Whose role is asked for: nobody's where the deployment's own server is configured at its own command line."""
    return None if raw["owner"] == "operator" else desk.acting(person)


def _write(desk: ServerDesk, name: str, launch: StdioLaunch) -> bool:
    """Put the command into the file; ``False`` when it stands there so already.

    Raises:
        Conflict: another command stands there, which other organizations may rely on.
    """
    standing = desk.launches.get(name)
    if standing == launch:
        return False
    if standing is not None:
        raise Conflict(
            f"{desk.file} has another command for {name}; choose another name, or change it with 'mcp configure {name} --stdio'"
        )
    put_launch(desk.file, name, launch)
    if launch.home is not None:  # not before the name has passed, because it is a part of this path
        Path(launch.home).mkdir(parents=True, exist_ok=True, mode=0o700)
    return True


async def _first_member(desk: ServerDesk) -> None:
    """The embedded database of a folder is its owner's, who is made admin there as ``agentic dev`` does; another one has members."""
    members = desk.records.members
    if not os.environ.get(DATABASE_URL) and not await members.list(desk.organization_id):
        await members.put(desk.organization_id, desk.acting(None), Role.ADMIN)
