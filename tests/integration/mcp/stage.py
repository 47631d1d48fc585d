"""Servers of strangers, as small programs: what a test says they do is what they do."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from pydantic import SecretStr

from agentic.contract.errors import NotFound
from agentic.services.mcp.authentication import Credential
from agentic.services.mcp.config import (
    Authentication,
    AuthScheme,
    HttpEndpoint,
    Owner,
    ServerConfig,
    StdioLaunch,
    Timeouts,
)
from agentic.services.mcp.config_check import Permits
from agentic.services.mcp.servers import RemoteServer
from agentic.services.mcp.slots import Slots

PROGRAM = Path(__file__).parent / "scripted_stdio.py"
TOKEN = "tok-4711-abcdef"


ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}


def declared(name: str, description: str = "Does it.", **more: Any) -> dict[str, Any]:
    """A tool as its server lists it."""
    return {"name": name, "description": description, "inputSchema": ANYTHING, **more}


def listing(*tools: dict[str, Any]) -> dict[str, str]:
    """The variables by which the scripted program lists these."""
    return {"PAGES": json.dumps({"": {"tools": list(tools)}})}


class Vault:
    """Credentials by reference, as they are now."""

    def __init__(self, **values: str) -> None:
        self.values: dict[str, str] = values or {"vault:token": TOKEN}
        self.asked = 0

    async def resolve(self, reference: str) -> Credential:
        self.asked += 1
        if reference not in self.values:
            raise NotFound("no credential under this reference")
        return Credential(secret=SecretStr(self.values[reference]), client_id="client-7")


class Marks:
    """What runs remember of servers."""

    def __init__(self) -> None:
        self.renewed: set[tuple[UUID, str]] = set()
        self.given_up: set[tuple[UUID, str]] = set()

    async def unauthorized(self, *, run_id: UUID, server_id: str) -> bool:
        return (run_id, server_id) in self.given_up

    async def take_renewal(self, *, run_id: UUID, server_id: str) -> bool:
        first = (run_id, server_id) not in self.renewed
        self.renewed.add((run_id, server_id))
        return first

    async def give_up(self, *, run_id: UUID, server_id: str) -> None:
        self.given_up.add((run_id, server_id))


def stdio_config(*habits: str, connect_s: float = 30, idle_s: float = 900, **launch: Any) -> ServerConfig:
    return ServerConfig(
        server_id="scripted",
        owner=Owner.OPERATOR,
        endpoint=StdioLaunch(command=(sys.executable, "-I", "-S", str(PROGRAM), *habits), **launch),
        authentication=Authentication(scheme=AuthScheme.ENV, credential_ref="vault:token", name="API_TOKEN"),
        timeouts=Timeouts(connect_s=connect_s, idle_s=idle_s),
    )


BEARER = Authentication(scheme=AuthScheme.BEARER, credential_ref="vault:token")


def http_config(url: str, authentication: Authentication | None = None, *, connect_s: float = 30) -> ServerConfig:
    return ServerConfig(
        server_id="scripted",
        owner=Owner.OPERATOR,
        endpoint=HttpEndpoint(url=url),
        authentication=authentication or Authentication(),
        timeouts=Timeouts(connect_s=connect_s),
    )


@asynccontextmanager
async def server_of(
    config: ServerConfig,
    *,
    slots: Slots | None = None,
    vault: Vault | None = None,
    permits: Permits = lambda origin: True,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[RemoteServer]:
    server = RemoteServer(config, vault=vault or Vault(), permits=permits, slots=slots or Slots(), tls=tls)
    try:
        yield server
    finally:
        await server.aclose()


async def call(server: RemoteServer, name: str, timeout_s: float | None = 30, **arguments: Any) -> Any:
    connection = await server.connection()
    raw = await connection.session.request("tools/call", {"name": name, "arguments": arguments}, timeout_s=timeout_s)
    return raw["content"][0]["text"] if raw.get("content") else raw


def alive(pid: int) -> bool:
    """Whether a process still runs; one that nobody has buried yet does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def until(holds: Callable[[], bool], *, within_s: float = 20) -> None:
    """Look again and again, because nothing tells when another process has ended."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - another process has no event of ours
            await asyncio.sleep(0.01)
