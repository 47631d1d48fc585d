"""Calls of different runs do not wait for each other: no lock of the process, no connection held over a handler."""

import asyncio
from typing import Any

import psycopg
import pytest

from agentic.contract.principal import Principal
from agentic.contract.results import ToolResult
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.context import CallContext
from agentic.testing import Harness, Say, harness
from core_world import Done, World


async def lead(h: Harness) -> ToolInvocation:
    """A run of its own, led by hand."""
    run_id = await h.start()
    led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    assert led is not None
    return ToolInvocation(
        principal=Principal(organization_id=h.organization_id, user_id=h.user_id),
        run_id=run_id,
        root_run_id=led.root_run_id,
        definition=led.definition_name,
        fence=led.lease.fence,
        tools={tool.spec.name: tool for tool in h.platform.registry.freeze(h.agent.tools)},
        context_trust=led.context_trust,
    )


async def save(h: Harness, inv: ToolInvocation, text: str) -> ToolResult:
    call = ToolCall(tool="notes.save", arguments_text=f'{{"text": "{text}"}}')
    return await asyncio.wait_for(h.platform.invoker.invoke(call, inv), timeout=20)


async def test_more_handlers_run_at_once_than_there_are_connections(database: str) -> None:
    many = 20
    together = asyncio.Barrier(many)

    async def meet(_ctx: CallContext, _args: Any) -> Any:
        await together.wait()  # nobody leaves before all have come
        return Done(id="1")

    world = World()
    async with harness(tools=[world.write(does=meet)], script=[Say("x")], database_url=database) as h:
        assert h.platform.database.pool.max_size < many
        runs = [await lead(h) for _ in range(many)]
        answers = await asyncio.gather(*(save(h, inv, str(n)) for n, inv in enumerate(runs)))
    assert all(answer.ok for answer in answers)


@pytest.mark.parametrize("statement", ["claim", "completion"])
async def test_a_statement_that_waits_in_the_database_holds_up_its_own_run_alone(
    direct_database: str, statement: str
) -> None:
    """Another session locks what the first call writes next; the second call starts and ends meanwhile."""
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def pause(_ctx: CallContext, args: Any) -> Any:
        if args.text == "first":
            inside.set()
            await go_on.wait()
        return Done(id="1")

    world = World()
    async with harness(tools=[world.write(does=pause)], script=[Say("x")], database_url=direct_database) as h:
        first, second = await lead(h), await lead(h)
        async with await psycopg.AsyncConnection.connect(direct_database) as other:
            if statement == "claim":
                go_on.set()
                await other.execute("select from agent.runs where id = %s for update", (first.run_id,))
                held_up = asyncio.create_task(save(h, first, "first"))
            else:
                held_up = asyncio.create_task(save(h, first, "first"))
                await asyncio.wait_for(inside.wait(), timeout=30)
                await other.execute("select from agent.idempotency_keys where run_id = %s for update", (first.run_id,))
                go_on.set()
            await _waits_for_a_lock(direct_database)
            assert (await save(h, second, "second")).ok
            assert not held_up.done()
            await other.rollback()
        assert (await held_up).ok


async def _waits_for_a_lock(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as watcher, asyncio.timeout(30):
        while True:
            waiting = await watcher.execute(
                "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            )
            if await waiting.fetchone() is not None:
                return
            await asyncio.sleep(0.01)
