"""``mcp_servers.sweep`` on the engine: every five minutes, one probe of what is due."""

from fastapi import FastAPI

from agentic.bootstrap import App, function_ports
from agentic.functions.mcp_servers_sweep import mcp_servers_sweep
from agentic.functions.serve import all_functions, mount
from agentic.local.engine.server import bind, serving
from agentic.services.mcp.administration import Probed
from workflow_stage import stage


class Probing:
    """Counts."""

    def __init__(self) -> None:
        self.probed = 0

    async def probe_due(self) -> Probed:
        self.probed += 1
        return Probed(reached=2, failed=1)


async def test_the_clock_has_servers_looked_at_and_says_how_many_answered(database: str) -> None:
    probing = Probing()
    async with stage(database, App(), serve=False) as s:
        web = FastAPI(openapi_url=None)
        mount(web, s.client, [mcp_servers_sweep(s.client, probing)])
        listener = bind("127.0.0.1", 0)
        async with serving(web, listener):
            await s.engine.sync(f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest")
            s.jump(300)
            views = await s.ended(1)
    assert views[0].result == {"reached": 2, "failed": 1} and probing.probed >= 1


async def test_a_deployment_serves_it(database: str) -> None:
    async with stage(database, App(), serve=False) as s:
        served = {function.id for function in all_functions(s.client, function_ports(s.platform))}
        assert mcp_servers_sweep(s.client, s.platform.mcp).id in served
