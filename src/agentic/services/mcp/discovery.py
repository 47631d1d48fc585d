"""Asks a server for its tools, page by page, and stops where a well-meaning server would have stopped.

Lists are read raw: the SDK's typed list refuses a whole page for one bad tool.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agentic.services.mcp.catalog import Catalog, read_catalog
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.servers import RemoteServer
from agentic.services.tools.telemetry import count_mcp_request

MAX_PAGES: Final = 50
MAX_TOOLS: Final = 1_000
MAX_LIST_BYTES: Final = 8 * 1024 * 1024
MAX_CURSOR: Final = 4_096
DISCOVERY_TIMEOUT_S: Final = 30.0
_LIST: Final = "tools/list"


class Asks(Protocol):
    """A session, as far as a list needs one."""

    async def request(
        self, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send one request and wait for its raw answer."""
        ...


async def discover(server: RemoteServer) -> Catalog:
    """What a server offers now. The list has one deadline of 30 seconds, which begins when there is a slot to read it in.

    Raises:
        RemoteFailure: the server cannot be used, its list is none, or it has no end.
    """
    config = server.config
    connection = await server.connection()
    if not connection.greeting.offers("tools"):
        return read_catalog(config.server_id, [])
    limit = asyncio.timeout(DISCOVERY_TIMEOUT_S)
    try:
        async with server.slots.preparing(starts_process=False), limit:
            raw = await list_tools(connection.session, server_id=config.server_id, request_s=config.timeouts.request_s)
    except TimeoutError:
        if not limit.expired():
            raise
        raise RemoteFailure(Trouble.TIMEOUT, "the list of tools was not read in time") from None
    # checking a thousand schemas takes long enough to be done beside the event loop, which renews leases
    return await asyncio.to_thread(read_catalog, config.server_id, raw)


async def list_tools(session: Asks, *, server_id: str, request_s: float) -> list[object]:
    """Every entry of a server's list, as it stands there.

    Raises:
        RemoteFailure: a page is no page, a cursor comes again, or there are more than 50 pages, 1,000 tools or 8 MiB of them.
    """
    entries: list[object] = []
    cursor: str | None = None
    seen: set[str] = set()
    size = 0
    for _ in range(MAX_PAGES):
        page = await _page(session, cursor, server_id=server_id, request_s=request_s)
        found = page.get("tools")
        if not isinstance(found, list):
            raise RemoteFailure(Trouble.PROTOCOL, "the list of tools is no list", sent=True)
        size += len(json.dumps(found))
        entries += found
        if len(entries) > MAX_TOOLS or size > MAX_LIST_BYTES:
            raise RemoteFailure(
                Trouble.TOO_LARGE, f"the server lists more than {MAX_TOOLS} tools or {MAX_LIST_BYTES} bytes", sent=True
            )
        cursor = page.get("nextCursor")
        if cursor is None:
            return entries
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR or cursor in seen:
            raise RemoteFailure(
                Trouble.PROTOCOL, "the list of tools goes in a circle, or has no readable end", sent=True
            )
        seen.add(cursor)
    raise RemoteFailure(Trouble.TOO_LARGE, f"the list of tools has more than {MAX_PAGES} pages", sent=True)


async def _page(session: Asks, cursor: str | None, *, server_id: str, request_s: float) -> dict[str, Any]:
    try:
        page = await session.request(_LIST, {"cursor": cursor} if cursor is not None else {}, timeout_s=request_s)
    except RemoteFailure as failure:
        count_mcp_request(server=server_id, method=_LIST, outcome=str(failure.trouble))
        raise
    count_mcp_request(server=server_id, method=_LIST, outcome="ok")
    return page
