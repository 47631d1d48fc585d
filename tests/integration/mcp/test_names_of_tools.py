"""Whose tool a name is: a remote tool is called by its own name on the wire, and one name of two servers and our code is three tools."""

import json
from typing import Any
from uuid import UUID

import pytest

from agentic.runtime.agent.script import Turn
from agentic.services.mcp.config import Classification, ServerConfig
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects, model_tool_name
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, rows
from tests.integration.mcp.scripted_http import Scripted, rpc, scripted
from tests.integration.mcp.stage import declared, http_config

READ = Classification(side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY)
LONG = "accounts.search/by_owner_region_and_lifecycle_stage_v2_with_every_field"
pytestmark = pytest.mark.usefixtures("nothing_left")


def named(server_id: str, peer: Scripted) -> ServerConfig:
    """The peer as a server whose tools read, unless the operator says otherwise."""
    return http_config(peer.url).model_copy(update={"server_id": server_id, "classification": READ})


async def shown(h: Harness, run_id: UUID) -> list[str]:
    """What a run was shown, by name."""
    (row,) = await rows(h, "select tools from agent.runs where id = %(id)s", id=run_id)
    return [tool["name"] for tool in row["tools"]]


@pytest.mark.guarantee("N1")
async def test_a_tool_whose_name_no_provider_takes_is_called_by_its_own_name_on_the_wire(database: str) -> None:
    async with scripted(tools=[declared(LONG)]) as peer:
        async with harness(
            tools=[], script=[Say("x")], servers=[named("customer_relations_eu", peer)], database_url=database
        ) as h:
            (name,) = await shown(h, await h.start())
        assert len(model_tool_name(name)) <= 64 and model_tool_name(name).replace("_", "").isalnum()
        async with harness(
            tools=[],
            script=[Calls([Call(name, {"q": "ada"})]), Say("Done.")],
            servers=[named("customer_relations_eu", peer)],
            database_url=database,
        ) as again:  # another process: the name is made of the two names alone
            run_id = await again.start()
            assert (await again.settle(run_id)).state == "succeeded" and await shown(again, run_id) == [name]
        assert [asked.message["params"] for asked in peer.calls()] == [{"name": LONG, "arguments": {"q": "ada"}}]


@pytest.mark.guarantee("N1", "T1")
@pytest.mark.parametrize("order", [("billing_eu", "billing_us"), ("billing_us", "billing_eu")])
async def test_one_name_of_two_servers_and_of_our_code_is_three_tools_whichever_came_first(
    database: str, order: tuple[str, str]
) -> None:
    def says(where: str) -> Any:
        def on(server: Scripted, asked: Any) -> Any:
            done = {"content": [{"type": "text", "text": where}]}
            return rpc(asked.message["id"], done) if asked.tool else ...

        return on

    world = World()
    names = ("mcp.billing_eu.create_invoice", "mcp.billing_us.create_invoice", "billing.create_invoice")
    tools = [declared("create_invoice")]
    async with scripted(says("eu"), tools=tools) as eu, scripted(says("us"), tools=tools) as us:
        peers = {"billing_eu": eu, "billing_us": us}
        script: list[Turn] = [Calls([Call(name, {"text": "x"}) for name in names]), Say("Done.")]
        servers = [named(server_id, peers[server_id]) for server_id in order]
        own = world.read("billing.create_invoice")
        async with harness(tools=[own], script=script, servers=servers, database_url=database) as h:
            run_id = await h.start()
            assert (await h.settle(run_id)).state == "succeeded"
            texts = [text for role, text in await h.messages(run_id) if role == "tool"]
            said = [json.loads(text).get("external", {}).get("data", {}).get("content") for text in texts]
            assert [each and each[0]["text"] for each in said] == ["eu", "us", None]
            assert sorted(await shown(h, run_id)) == sorted(names)
            await h.platform.mcp.retire(h.organization_id, "billing_eu", user_id=h.user_id)
            assert sorted(await shown(h, await h.start())) == sorted(names[1:])
    assert (len(eu.calls()), len(us.calls())) == (1, 1)
