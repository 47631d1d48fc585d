"""Prompts of a server, as people are shown them: cut, visible, labelled as a stranger's, and never more than the list says."""

from collections.abc import Callable
from typing import Any

import pytest

from agentic.contract.trust import Trust
from agentic.services.mcp.discovery import MAX_PAGES
from agentic.services.mcp.failures import RemoteFailure, Trouble
from agentic.services.mcp.prompts import MAX_ARGUMENTS, PromptArgument, RemotePrompt, prompts
from tests.integration.mcp.scripted_http import Asked, Scripted, plain, rpc, scripted
from tests.integration.mcp.stage import http_config, server_of

pytestmark = pytest.mark.usefixtures("nothing_left")
On = Callable[[Scripted, Asked], Any]


def listing(answer: Callable[[Scripted, Asked], Any], *, offers: bool = True) -> On:
    """A server whose answer to the list of prompts this is."""

    def on(server: Scripted, asked: Asked) -> Any:
        message = asked.message
        if message.get("method") == "initialize":
            said = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"prompts": {}} if offers else {},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
            return rpc(message["id"], said)
        return answer(server, asked) if message.get("method") == "prompts/list" else ...

    return on


async def read(on: On) -> tuple[RemotePrompt, ...]:
    async with scripted(on) as peer, server_of(http_config(peer.url)) as server:
        return await prompts(server)


@pytest.mark.guarantee("B3")
async def test_prompts_of_every_page_are_shown_cut_and_visible_and_as_a_strangers_words() -> None:
    pages: dict[Any, dict[str, Any]] = {
        None: {
            "prompts": [
                {
                    "name": "sum\x1b[31mmary",
                    "description": "x" * 5_000 + "\U000e0041",
                    "arguments": [
                        {"name": "text", "description": "What\u200bever", "required": True},
                        {"name": "tone"},
                    ],
                }
            ],
            "nextCursor": "2",
        },
        "2": {"prompts": [{"name": "n" * 500, "description": 7, "arguments": "none"}]},
    }

    def on(server: Scripted, asked: Asked) -> bytes:
        return rpc(asked.message["id"], pages[(asked.message.get("params") or {}).get("cursor")])

    first, second = await read(listing(on))
    assert first == RemotePrompt(
        name="sum[31mmary",
        description="x" * 1_018 + " […]",
        arguments=(
            PromptArgument(name="text", description="What\u200bever", required=True),
            PromptArgument(name="tone", description="", required=False),
        ),
    )
    assert second == RemotePrompt(name="n" * 128, description="")
    assert {first.trust, second.trust} == {Trust.EXTERNAL}


async def test_entries_that_are_none_are_left_out_and_arguments_beyond_the_limit_are_counted() -> None:
    entries = ["no entry", {"description": "nameless"}, {"name": "\x00\x01"}, {"name": None}]
    many = {"name": "many", "arguments": [*({"name": f"a{number}"} for number in range(40)), "none", {}]}
    found = await read(listing(lambda server, asked: rpc(asked.message["id"], {"prompts": [*entries, many]})))
    assert [each.name for each in found] == ["many"]
    assert len(found[0].arguments) == MAX_ARGUMENTS and found[0].left_out == 40 - MAX_ARGUMENTS


async def test_a_server_without_prompts_is_not_asked_for_them() -> None:
    def never(server: Scripted, asked: Asked) -> bytes:
        raise AssertionError("asked for what it does not offer")

    async with scripted(listing(never, offers=False)) as peer, server_of(http_config(peer.url)) as server:
        assert await prompts(server) == () and peer.asked("prompts/list") == []


def error(code: int) -> On:
    body = '{"jsonrpc": "2.0", "id": %s, "error": {"code": %d, "message": "hostile words"}}'
    return listing(
        lambda server, asked: plain(
            "200 OK", (body % (asked.message["id"], code)).encode(), "Content-Type: application/json"
        )
    )


async def test_a_server_that_announces_a_list_that_it_does_not_have_has_none() -> None:
    assert await read(error(-32601)) == ()


async def test_another_error_is_a_failure_that_does_not_speak_in_the_servers_words() -> None:
    with pytest.raises(RemoteFailure) as failure:
        await read(error(-32000))
    assert failure.value.trouble is Trouble.SERVER_ERROR and "hostile" not in str(failure.value)


async def test_a_list_without_an_end_is_left_after_fifty_pages() -> None:
    def on(server: Scripted, asked: Asked) -> bytes:
        return rpc(asked.message["id"], {"prompts": [], "nextCursor": str(len(server.asked("prompts/list")))})

    async with scripted(listing(on)) as peer, server_of(http_config(peer.url)) as server:
        with pytest.raises(RemoteFailure) as failure:
            await prompts(server)
        assert failure.value.trouble is Trouble.TOO_LARGE and len(peer.asked("prompts/list")) == MAX_PAGES
