"""What keeps a server from working, looked for in the order in which it would fail: each step says what was found and what to do."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final
from uuid import UUID

from agentic.cli.mcp_desk import ServerDesk
from agentic.cli.mcp_fetching import downloads
from agentic.cli.mcp_remedies import its_words, remedy
from agentic.cli.safe_text import safe_line
from agentic.contract.errors import AgenticError
from agentic.services.connections.envelope import VaultKeys
from agentic.services.connections.models import ConnectionState
from agentic.services.connections.service import ConnectionService
from agentic.services.mcp.config import AuthScheme, HttpEndpoint, StdioLaunch
from agentic.services.mcp.config_check import server_faults
from agentic.services.mcp.failures import RemoteFailure
from agentic.services.mcp.permits import permits_of
from agentic.services.mcp.records import ServerState, Standing
from agentic.storage.connection_store import PostgresConnectionStore

SDK: Final = "mcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing that was looked at."""

    server: str | None
    """``None`` for what concerns all of them."""
    what: str
    ok: bool
    said: str
    remedy: str | None = None

    def view(self) -> dict[str, str | bool | None]:
        """As a JSON object."""
        return {name: getattr(self, name) for name in ("server", "what", "ok", "said", "remedy")}


async def examine(desk: ServerDesk, names: list[str]) -> AsyncIterator[Step]:
    """Look at the deployment, then at each server until a step of it fails.

    Args:
        names: of the servers; those that the organization has and are not retired, when empty.

    Raises:
        NotFound: there is no such server.
    """
    yield _sdk()
    known = await desk.servers.servers(desk.organization_id)
    yield _file(desk, concerned=not names or any(server.launch_fault for server in known if server.server_id in names))
    for name in sorted(desk.launches.keys() - {server.server_id for server in known}):
        yield _step(name, "row", said="it is in the file, and this organization has no server of that name")
    for server in known:
        if server.state is ServerState.RETIRED and (not names or server.server_id in names):
            async for step in _left(desk, server.server_id):
                yield step
    for name in names or [server.server_id for server in known if server.state is not ServerState.RETIRED]:
        async for step in _server(desk, await desk.servers.server(desk.organization_id, name)):
            yield step
            if not step.ok:
                break


def _sdk() -> Step:
    try:
        version = metadata.version(SDK)
    except metadata.PackageNotFoundError:
        return Step(
            server=None,
            what="sdk",
            ok=False,
            said="the protocol's SDK is not installed",
            remedy="install the extra: agentic-platform[mcp]",
        )
    return Step(server=None, what="sdk", ok=True, said=f"{SDK} {version}")


def _file(desk: ServerDesk, *, concerned: bool) -> Step:
    """The file of stdio servers. What is wrong with it is no fault where only servers are looked at that it is not about."""
    if faults := desk.launches.faults:
        said = f"{desk.file} cannot be used: {'; '.join(faults)}"
        remedy = "mend it there, as docs/mcp.md shows; what it is about is not started until then"
        return Step(server=None, what="file", ok=not concerned, said=said, remedy=remedy)
    if not desk.file.exists():
        return Step(server=None, what="file", ok=True, said=f"{desk.file} is not there, so no server is started here")
    return Step(server=None, what="file", ok=True, said=f"{desk.file} starts {', '.join(desk.launches) or 'none'}")


async def _left(desk: ServerDesk, name: str) -> AsyncIterator[Step]:
    """The HOME of a server that nobody has any more. It keeps nothing from working."""
    if desk.home_is_there(name) and not await desk.servers.started_for_somebody(name):
        remedy = f"{desk.again} mcp retire {name}, once more, removes it"
        yield Step(server=name, what="home", ok=True, said=f"{desk.home(name)} is left of it", remedy=remedy)


async def _server(desk: ServerDesk, standing: Standing) -> AsyncIterator[Step]:
    server = standing.server
    name = server.server_id
    retired = server.state is ServerState.RETIRED
    yield _step(name, "state", said=str(server.state), wrong="add another one, under another name" if retired else None)
    endpoint = server.config.endpoint
    if isinstance(endpoint, HttpEndpoint):
        faults = list(server_faults(server.config, permits=permits_of(server.config, desk.permits)))
        wrong = "let its origin through with AGENTIC_EGRESS_ALLOW, or add it anew" if faults else None
        yield _step(name, "egress", said="; ".join(faults) or endpoint.url, wrong=wrong)
    else:
        if server.launch_fault is not None:
            yield _step(name, "entry", said=server.launch_fault, wrong=f"correct {desk.file}, as docs/mcp.md shows")
            return
        for step in _launch(name, endpoint, desk.file):
            yield step
    if server.config.authentication.scheme is not AuthScheme.NONE:
        yield await _credential(desk, standing)
    async for step in _talk(desk, standing):
        yield step


def _launch(name: str, launch: StdioLaunch, file: Path) -> Iterator[Step]:
    program = shutil.which(launch.command[0], path=launch.path)
    wrong = None if program else f"install it, or name its folder in 'path' of {file}; it is {launch.path}"
    yield _step(name, "command", said=program or f"{launch.command[0]} is no program on its path", wrong=wrong)
    for what, folder in (("cwd", launch.cwd), ("home", launch.home)):
        if folder is not None and not Path(folder).is_dir():
            yield _step(name, what, said=f"there is no folder {folder}", wrong=f"make it, or correct {what} in {file}")
    if launch.home is not None and not os.access(launch.home, os.W_OK):
        yield _step(name, "home", said=f"{launch.home} may not be written", wrong="give it to whoever runs the workers")
    settings = ", ".join(sorted(launch.variables)) or "no settings"
    said = f"{settings}; home {launch.home or 'empty at each start'}"
    cold = f"each start downloads it anew; give it a 'home' in {file} that stays" if launch.home is None else None
    remedy = cold if downloads(launch) else None
    yield Step(server=name, what="environment", ok=True, said=said, remedy=remedy)


async def _credential(desk: ServerDesk, standing: Standing) -> Step:
    auth, name = standing.server.config.authentication, standing.server.server_id
    service = ConnectionService(store=PostgresConnectionStore(desk.records.database), keys=VaultKeys.from_environment())
    try:
        found = await service.check(desk.organization_id, UUID(auth.credential_ref))
    except AgenticError as error:
        return _step(
            name, "credential", said=str(error), wrong=f"connect the account: agentic connections add mcp.{name}"
        )
    said = f"{auth.scheme}, connection {auth.credential_ref} {found.connection.state}"
    if found.usable:
        return _step(name, "credential", said=said)
    if found.connection.state is ConnectionState.REVOKED:
        wrong = f"{desk.again} mcp configure {name} --auth … --connection ANOTHER"
    elif found.opens:
        wrong = f"{desk.again} connections reconnect {auth.credential_ref}"
    else:
        wrong = "set AGENTIC_VAULT_KEYS as it was"
    return _step(name, "credential", said=f"{said}: {found.note}", wrong=wrong)


async def _talk(desk: ServerDesk, standing: Standing) -> AsyncIterator[Step]:
    name = standing.server.server_id
    began = asyncio.get_running_loop().time()
    try:
        async with desk.remote(standing.server) as remote:
            connection = await remote.look()
            took_s = asyncio.get_running_loop().time() - began
    except RemoteFailure as failure:
        said = f"{failure.trouble}: {failure}{its_words(failure)}"
        yield _step(name, "handshake and list", said=said, wrong=remedy(failure.trouble, name))
        return
    greeting, catalog = connection.greeting, connection.catalog
    who = f"{safe_line(greeting.name)} {safe_line(greeting.version)}, protocol {safe_line(greeting.protocol_version)}"
    waits_s = standing.server.config.opens_within_s
    more = f"{desk.again} mcp configure {name} --connect-timeout 120"
    if isinstance(endpoint := standing.server.config.endpoint, StdioLaunch) and endpoint.start_s is not None:
        more = f"a longer start_s in {desk.file}"
    late = f"a run waits {waits_s:g} s; where a second look takes as long, {more}"
    yield _step(name, "handshake", said=f"{who}, in {took_s:.1f} s", wrong=late if took_s > waits_s else None)
    counts = f"{len(catalog.tools)} tools, {len(catalog.rejected)} rejected, {len(catalog.conflicts)} conflicts"
    yield _step(name, "list", said=counts)
    if standing.server.state is ServerState.VERIFIED:
        yield _step(name, "approval", said="nothing is offered to runs", wrong=f"{desk.again} mcp activate {name}")
    elif standing.server.state is ServerState.REGISTERED:
        yield _step(name, "approval", said="it was never verified", wrong=f"{desk.again} mcp verify {name}")
    elif standing.quarantined or standing.waiting:
        said = (
            f"{len(standing.unchanged)} approved, {len(standing.quarantined)} changed, {len(standing.waiting)} waiting"
        )
        yield _step(name, "approval", said=said, wrong=f"{desk.again} mcp diff {name}, then approve")
    else:
        yield _step(name, "approval", said=f"{len(standing.unchanged)} approved")


def _step(server: str, what: str, *, said: str, wrong: str | None = None) -> Step:
    return Step(server=server, what=what, ok=wrong is None, said=said, remedy=wrong)
