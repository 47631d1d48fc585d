"""Putting a new server down: its command in the deployment's file, its row in the database, and a first look."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from agentic.cli.mcp_desk import ServerDesk, Unusable
from agentic.cli.mcp_views import server_view, tool_views
from agentic.contract.errors import AgenticError, Conflict, NotFound, ProgramFault
from agentic.contract.json_types import JsonArray, JsonObject
from agentic.contract.principal import Role
from agentic.local.home import DATABASE_URL
from agentic.services.mcp.config import StdioLaunch
from agentic.services.mcp.deployment import put_launch
from agentic.services.mcp.records import ServerState, StoredServer


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
    One that dies after the row was written leaves a registered server, which ``verify`` looks at.

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
    before = await _found(desk, name)
    if before is not None and before.state is ServerState.RETIRED:
        raise Conflict(
            f"the server {name} was retired, and the name of a retired server is not used again, because grants, rules and approvals "
            "carry it; add this one under another name"
        )
    wrote = launch is not None and _write(desk, name, launch, has_row=before is not None)
    try:
        await desk.servers.add(desk.organization_id, raw, user_id=user_id)
    except AgenticError as refused:
        there = await _found(desk, name)
        started = there is not None and there.config.endpoint.type == "stdio" and there.state is not ServerState.RETIRED
        if wrote and not started:  # of two who add at once, one may write the command and the other the row
            put_launch(desk.file, name, None)
            with suppress(OSError):  # one that is empty is the one that was made for it
                desk.home(name).rmdir()
        if isinstance(refused, Conflict) and there is not None and there.state is not ServerState.RETIRED:
            raise Conflict(
                f"{refused}; this one is {there.state}: {desk.again} mcp show {name} tells how it is reached, mcp configure changes it"
            ) from refused
        raise
    return await _looked_at(desk, name, verify=verify)


async def put_otherwise(
    desk: ServerDesk,
    name: str,
    changes: Mapping[str, Any],
    launch: StdioLaunch | None,
    *,
    with_variables: bool,
    person: UUID | None,
    verify: bool,
) -> tuple[JsonObject, JsonArray]:
    """Configure a server otherwise; how it stands then, and what it offers.

    Args:
        changes: fields of ``ServerConfig`` in place of those it has; ``timeouts`` are put over those it has.
        launch: another command, of a stdio server, in the file: for every organization that has the server. Its home and its ``start_s``
            stay as they are there.
        with_variables: whether its settings are others too; else they stay.
        person: as in ``put_down``.
        verify: whether to look at it.

    Raises:
        ServerRefused: it may not stand so.
        NotFound: there is no such server.
        Conflict: it is retired, or was changed at the same time.
        AddedUnusable: it stands, and cannot be used.
    """
    server = (await desk.servers.server(desk.organization_id, name)).server
    if server.state is ServerState.RETIRED:  # before its command, which would stand in the file all the same
        raise Conflict(f"the server {name} is retired, which is for good; add another one under another name")
    standing = desk.launches.get(name)
    if launch is not None and standing is not None:
        kept = {"home": standing.home, "start_s": standing.start_s}
        launch = launch.model_copy(update=kept if with_variables else {**kept, "variables": standing.variables})
    before = server.config.model_dump(mode="json")
    if isinstance(server.config.endpoint, StdioLaunch):
        before["endpoint"] = {"type": "stdio"}
    elif launch is not None:
        raise Conflict(f"{name} is reached over HTTP; add a server of another name for a command")
    if (
        launch is not None and standing is None
    ):  # before what is said of the row, which is judged together with the command
        _put(desk, name, launch)
    if changes:
        waits = {**before["timeouts"], **changes.get("timeouts", {})}
        raw = {**before, **changes, "timeouts": waits}
        await desk.servers.reconfigure(
            desk.organization_id, raw, revision=server.revision, user_id=_who(desk, raw, person)
        )
    if launch is not None and standing is not None:
        _put(desk, name, launch)
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


async def _found(desk: ServerDesk, name: str) -> StoredServer | None:
    try:
        return (await desk.servers.server(desk.organization_id, name)).server
    except NotFound:
        return None


def _who(desk: ServerDesk, raw: Mapping[str, Any], person: UUID | None) -> UUID | None:
    """Whose role is asked for: nobody's where the deployment's own server is configured at its own command line."""
    return None if raw["owner"] == "operator" else desk.acting(person)


def _write(desk: ServerDesk, name: str, launch: StdioLaunch, *, has_row: bool) -> bool:
    """Put the command into the file; ``False`` when it stands there so already.

    Args:
        has_row: the organization has a server of this name.

    Raises:
        Conflict: something else stands there, which other organizations may rely on.
    """
    standing = desk.launches.get(name)
    if standing is not None and standing.model_copy(update={"start_s": None}) == launch:
        _make_home(desk, name)
        return False
    mend = (
        f"change it with '{desk.again} mcp configure {name} --stdio'"
        if has_row
        else "correct it there, if no other organization relies on it"
    )
    if standing is not None:
        raise Conflict(f"{desk.file} has another command for {name}; choose another name, or {mend}")
    if name in desk.launches.broken:
        raise Conflict(f"{desk.launches.not_started(name)}; choose another name, or {mend}")
    _put(desk, name, launch)
    return True


def _put(desk: ServerDesk, name: str, launch: StdioLaunch) -> None:
    put_launch(desk.file, name, launch)
    if launch.home == str(desk.home(name)):
        _make_home(desk, name)


def _make_home(desk: ServerDesk, name: str) -> None:
    """Make the HOME that stays; not before the name has passed, because it is a part of this path."""
    home = desk.home(name)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ProgramFault(
            f"there can be no folder {home} ({reason}), which is the server's HOME; make room for it"
        ) from error


async def _first_member(desk: ServerDesk) -> None:
    """The embedded database of a folder is its owner's, who is made admin there as ``agentic dev`` does; another one has members."""
    members = desk.records.members
    if not os.environ.get(DATABASE_URL) and not await members.list(desk.organization_id):
        await members.put(desk.organization_id, desk.acting(None), Role.ADMIN)
