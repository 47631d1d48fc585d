"""Lists of tools as servers really write them: in pages, in circles, without an end, with one bad entry among the good."""

import json
from typing import Any

import pytest

from agentic.services.mcp import discovery
from agentic.services.mcp.catalog import Catalog
from agentic.services.mcp.discovery import MAX_ENTRIES, MAX_PAGES
from agentic.services.mcp.failures import RemoteFailure, Trouble
from tests.integration.mcp.scripted_http import Asked, Scripted, plain, rpc, scripted
from tests.integration.mcp.stage import http_config, server_of, stdio_config

pytestmark = pytest.mark.usefixtures("nothing_left")


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}


async def listed(pages: dict[str, Any]) -> Catalog:
    async with server_of(stdio_config(variables={"PAGES": json.dumps(pages)})) as server:
        return (await server.look()).catalog


@pytest.mark.guarantee("N3")
async def test_every_page_is_read_and_a_bad_tool_costs_itself_alone() -> None:
    catalog = await listed(
        {
            "": {"tools": [tool("a"), {"name": "bad", "inputSchema": {"type": "array"}}], "nextCursor": "2"},
            "2": {"tools": [tool("b"), {"name": None}], "nextCursor": "3"},
            "3": {"tools": [tool("c")]},
        }
    )
    assert [each.name for each in catalog.tools] == ["mcp.scripted.a", "mcp.scripted.b", "mcp.scripted.c"]
    assert [each.remote_name for each in catalog.rejected] == ["", "bad"]


@pytest.mark.parametrize(
    ("pages", "trouble"),
    [
        ({"": {"tools": [], "nextCursor": "2"}, "2": {"tools": [], "nextCursor": "2"}}, Trouble.PROTOCOL),
        ({"": {"tools": [], "nextCursor": 7}}, Trouble.PROTOCOL),
        ({"": {"tools": [], "nextCursor": "x" * 5_000}}, Trouble.PROTOCOL),
        ({"": {"tools": {}}}, Trouble.PROTOCOL),
        ({"": {}}, Trouble.PROTOCOL),
        ({"": {"tools": [{}] * (MAX_ENTRIES + 1)}}, Trouble.TOO_LARGE),
    ],
)
async def test_a_list_that_is_none_or_goes_in_a_circle_is_not_read_on(pages: dict[str, Any], trouble: Trouble) -> None:
    with pytest.raises(RemoteFailure) as failure:
        await listed(pages)
    assert failure.value.trouble is trouble


async def test_a_list_without_an_end_is_left_after_fifty_pages() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        if asked.message.get("method") != "tools/list":
            return ...
        return rpc(asked.message["id"], {"tools": [], "nextCursor": str(len(server.asked("tools/list")))})

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
        assert failure.value.trouble is Trouble.TOO_LARGE and len(peer.asked("tools/list")) == MAX_PAGES


async def test_a_list_beyond_the_size_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_LIST_BYTES", 100)
    with pytest.raises(RemoteFailure) as failure:
        await listed({"": {"tools": [tool("x" * 100)]}})
    assert failure.value.trouble is Trouble.TOO_LARGE


async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        if asked.message.get("method") == "initialize":
            said = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return rpc(asked.message["id"], said)
        return ...

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        assert (await server.connection()).catalog.tools == () and peer.asked("tools/list") == []


async def test_a_list_that_fails_says_how() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        return plain("500 Oh no") if asked.message.get("method") == "tools/list" else ...

    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await server.connection()
    assert failure.value.trouble is Trouble.HTTP_STATUS and failure.value.status == 500


async def test_a_second_look_finds_the_same_hash() -> None:
    async with server_of(
        stdio_config(variables={"PAGES": json.dumps({"": {"tools": [tool("a"), tool("b")]}})})
    ) as server:
        first, second = (await server.look()).catalog, (await server.look()).catalog
        assert first is not second and first == second


async def test_a_look_at_a_server_that_forgot_our_session_is_made_in_a_new_one() -> None:
    def on(server: Scripted, asked: Asked) -> Any:
        forgotten = asked.headers.get("mcp-session-id") == "s-1" and len(server.asked("tools/list")) > 1
        return plain("404 Not Found") if forgotten else ...

    async with scripted(on, tools=[tool("a")]) as peer, server_of(http_config(peer.url)) as server:
        await server.connection()
        peer.tools.append(tool("b"))
        assert [each.remote_name for each in (await server.look()).catalog.tools] == ["a", "b"]
        assert peer.sessions == 2


async def test_a_look_in_an_open_session_is_what_its_calls_are_held_against() -> None:
    async with scripted(tools=[tool("a")]) as peer, server_of(http_config(peer.url)) as server:
        connection = await server.connection()
        peer.tools.append(tool("b"))
        assert len(connection.catalog.tools) == 1
        assert await server.look() is connection and len(connection.catalog.tools) == 2
