"""Nodes of workflows call the tools of MCP servers as they call all others."""

from dataclasses import replace

import pytest

from agentic.bootstrap import workflows
from agentic.contract.results import ErrorCode
from agentic.runtime.workflow.phases import Done, Parked
from agentic.services.mcp.config import Classification, ServerConfig
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from tests.integration.mcp.scripted_http import scripted
from tests.integration.mcp.stage import declared, http_config
from workflow_flows import flow_app, flow_of, node, nothing
from workflow_stage import Stage, stage

READ = Classification(side_effects=SideEffects.READ, risk=Risk.LOW, idempotency=IdempotencyClass.READ_ONLY)


async def added(s: Stage, config: ServerConfig) -> None:
    await s.platform.mcp.add(s.organization_id, config.model_dump(mode="json"), user_id=None)
    seen = (await s.platform.mcp.verify(s.organization_id, config.server_id)).server
    assert seen.offered_hash is not None
    await s.platform.mcp.activate(
        s.organization_id, config.server_id, offered_hash=seen.offered_hash, user_id=s.user_id
    )


@pytest.mark.guarantee("J1", "T4")
async def test_a_node_calls_a_tool_of_a_server_that_its_workflow_names_by_a_pattern(database: str) -> None:
    async with (
        scripted(tools=[declared("find"), declared("send")]) as peer,
        stage(database, flow_app(nothing, []), serve=False) as s,
    ):
        await added(s, http_config(peer.url).model_copy(update={"per_tool": {"find": READ}}))
        leader, flow = workflows(s.platform).leader, replace(flow_of(s, []), tools=("mcp.scripted.*",))
        for _ in range(2):
            found = await leader.run(flow, node("look", "mcp.scripted.find"))
            assert isinstance(found, Done) and found.answer().ok
        assert len(peer.calls("find")) == 1
        assert await leader.run(flow, node("tell", "mcp.scripted.send")) == Parked()
        peer.tools[1] = declared("send", "Sends it to others as well.")
        await s.platform.mcp.verify(s.organization_id, "scripted")
        await s.decide()
        changed = await leader.run(flow, node("tell", "mcp.scripted.send"))
        assert isinstance(changed, Done) and changed.answer().error is not None
        error = changed.answer().error
        assert error is not None and error.code is ErrorCode.TOOL_CHANGED and peer.calls("send") == []


async def test_a_tool_that_came_after_the_workflow_began_is_none_of_its(database: str) -> None:
    async with scripted(tools=[declared("find")]) as peer, stage(database, flow_app(nothing, []), serve=False) as s:
        await added(s, http_config(peer.url).model_copy(update={"classification": READ}))
        leader, flow = workflows(s.platform).leader, replace(flow_of(s, []), tools=("mcp.scripted.*",))
        assert isinstance(await leader.run(flow, node("look", "mcp.scripted.find")), Done)
        peer.tools.append(declared("more"))
        seen = (await s.platform.mcp.verify(s.organization_id, "scripted")).server
        assert seen.offered_hash is not None
        await s.platform.mcp.approve(
            s.organization_id, "scripted", None, offered_hash=seen.offered_hash, user_id=s.user_id
        )
        phase = await leader.run(flow, node("more", "mcp.scripted.more"))
        assert isinstance(phase, Done) and peer.calls("more") == []
        error = phase.answer().error
        assert error is not None and error.code is ErrorCode.UNKNOWN_TOOL
