"""Asks a server for its tools, page by page, and stops where a well-meaning server would have stopped.

Lists are read raw: the SDK's typed list refuses a whole page for one bad tool.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentic.services.mcp.catalog import Catalog, read_catalog
from agentic.services.mcp.config import ServerConfig
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.tools.telemetry import count_mcp_request

if TYPE_CHECKING:
    from agentic.services.mcp.greeting import Greeting
    from agentic.services.mcp.session import Session

MAX_PAGES: Final = 50
MAX_ENTRIES: Final = 1_000
MAX_LIST_BYTES: Final = 8 * 1024 * 1024
MAX_CURSOR: Final = 4_096
DISCOVERY_TIMEOUT_S: Final = 30.0
_LIST: Final = "tools/list"


async def discover(config: ServerConfig, session: "Session", greeting: "Greeting") -> Catalog:
    """What a server offers now. The list has one deadline of 30 seconds; who calls holds the slot to read it in.

    Raises:
        RemoteFailure: the session ended, the list is none, or it has no end.
    """
    if not greeting.offers("tools"):
        return read_catalog(config.server_id, [])

    async def ask(params: Mapping[str, Any]) -> dict[str, Any]:
        outcome = "ok"
        try:
            return await session.request(_LIST, params, timeout_s=config.timeouts.request_s)
        except RemoteFailure as failure:
            outcome = str(failure.trouble)
            raise
        finally:
            count_mcp_request(server=config.server_id, method=_LIST, outcome=outcome)

    limit = asyncio.timeout(DISCOVERY_TIMEOUT_S)
    try:
        async with limit:
            raw = await paged(ask, key="tools")
    except TimeoutError:
        if not limit.expired():
            raise
        raise RemoteFailure(Trouble.TIMEOUT, "the list of tools was not read in time") from None
    # checking a thousand schemas takes long enough to be done beside the event loop, which renews leases
    return await asyncio.to_thread(read_catalog, config.server_id, raw)


async def paged(ask: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]], *, key: str) -> list[object]:
    """Every entry of a server's list, as it stands there.

    Args:
        ask: gets a page; its parameters hold the cursor of all but the first.
        key: where the entries stand in a page.

    Raises:
        RemoteFailure: a page is no page, a cursor comes again, or there are more than 50 pages, 1,000 entries or 8 MiB of them.
    """
    entries: list[object] = []
    cursor: str | None = None
    seen: set[str] = set()
    size = 0
    for _ in range(MAX_PAGES):
        page = await ask({"cursor": cursor} if cursor is not None else {})
        found = page.get(key)
        if not isinstance(found, list):
            raise RemoteFailure(Trouble.PROTOCOL, f"the list of {key} is no list", sent=True)
        size += len(json.dumps(found))
        entries += found
        if len(entries) > MAX_ENTRIES or size > MAX_LIST_BYTES:
            raise RemoteFailure(
                Trouble.TOO_LARGE,
                f"the server lists more than {MAX_ENTRIES} {key} or {MAX_LIST_BYTES} bytes",
                sent=True,
            )
        cursor = page.get("nextCursor")
        if cursor is None:
            return entries
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR or cursor in seen:
            raise RemoteFailure(
                Trouble.PROTOCOL, f"the list of {key} goes in a circle, or has no readable end", sent=True
            )
        seen.add(cursor)
    raise RemoteFailure(Trouble.TOO_LARGE, f"the list of {key} has more than {MAX_PAGES} pages", sent=True)
