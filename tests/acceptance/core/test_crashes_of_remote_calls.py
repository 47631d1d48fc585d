"""kill -9 while an MCP server has a call in hand: the next worker knows what may have happened, and repeats only what is harmless."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

import mcp_crash_app
from agentic.services.mcp.config import Classification
from agentic.services.tools.models import IdempotencyClass, Risk, SideEffects
from agentic.testing import KILLED, Harness, harness
from tests.integration.mcp.scripted_http import Asked, Scripted, scripted
from tests.integration.mcp.stage import declared, http_config
from time_passes import time_passes
from warm_processes import Process, Warm

LIMIT_S = 60


@asynccontextmanager
async def killed(database: str, dying: Warm, said: IdempotencyClass) -> AsyncIterator[tuple[Harness, Scripted, UUID]]:
    """A run whose first worker died when the server had its call, and the world after its leases."""

    leaders: list[Process] = []

    def on(server: Scripted, asked: Asked) -> Any:
        if asked.tool == "pay" and len(server.calls("pay")) == 1:
            os.kill(leaders[0].pid, signal.SIGKILL)
            return None
        return ...

    classified = Classification(side_effects=SideEffects.WRITE, risk=Risk.LOW, idempotency=said)
    async with (
        scripted(on, tools=[declared("pay")]) as peer,
        harness(tools=[], script=mcp_crash_app.SCRIPT, database_url=database, claim_grace_s=0.2) as h,
    ):
        await h.add_server(http_config(peer.url).model_copy(update={"classification": classified}))
        run_id = await h.start(agent=h.agent.model_copy(update={"tools": ("mcp.scripted.pay",)}))
        lease_s, claim_grace_s = 20, 1
        arguments = ("mcp_crash_app:make", h.organization_id, run_id, lease_s, claim_grace_s)
        environment = {**os.environ, "AGENTIC_CHILD_DATABASE_URL": h.database_url}
        call = "agentic.testing.child_process:main"
        with dying.started(call, *map(str, arguments), environment=environment) as leader:
            leaders.append(leader)
            status = await asyncio.to_thread(leader.wait, LIMIT_S)
        assert status == KILLED and len(peer.calls("pay")) == 1
        await time_passes(h.platform.database, run_id)
        yield h, peer, run_id


@pytest.mark.guarantee("J3")
async def test_a_call_that_may_have_paid_is_uncertain_and_not_made_again(database: str, dying: Warm) -> None:
    async with killed(database, dying, IdempotencyClass.NON_IDEMPOTENT) as (h, peer, run_id):
        end = await h.settle(run_id, timeout_s=20)
        assert (end.state, end.partial_reason) == ("succeeded", "outcome_unknown: mcp.scripted.pay")
        assert len(await h.uncertain(run_id)) == 1 and len(peer.calls("pay")) == 1


@pytest.mark.guarantee("J3")
async def test_a_call_that_does_no_harm_twice_is_made_again(database: str, dying: Warm) -> None:
    async with killed(database, dying, IdempotencyClass.IDEMPOTENT) as (h, peer, run_id):
        end = await h.settle(run_id, timeout_s=20)
        assert (end.state, end.partial_reason) == ("succeeded", None)
        assert await h.uncertain(run_id) == [] and len(peer.calls("pay")) == 2
