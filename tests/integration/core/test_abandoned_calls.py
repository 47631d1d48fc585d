"""Claims nobody proposes again: the sweep asks their tool's probe first, and an operator only when it cannot tell (ADR 0009)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from agentic.services.tools.declarations import Tool
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute, journal

SAVE = Calls([Call("notes.save", {"text": "milk"})])


class Probes:
    """What the probe of a test answers, and how often it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.entered, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def __call__(self, ctx: Any, args: Any) -> Any:
        self.asked.append(args.text)
        self.entered.set()
        await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def saves(world: World, probe: Probes, started: asyncio.Event, **declared: Any) -> Tool:
    """A write whose worker never hears its end."""

    async def hangs(_ctx: Any, _args: Any) -> Any:
        started.set()
        await asyncio.sleep(30)

    tool = world.write(does=hangs, **declared)
    return Tool(spec=tool.spec, handler=tool.handler, input_model=tool.input_model, refusals=tool.refusals, probe=probe)


@asynccontextmanager
async def abandoned(database: str, probe: Probes, *, over: bool = True) -> AsyncIterator[tuple[Harness, UUID]]:
    """A claim past its lease whose worker is gone; of a run that is over, or one that nobody leads now."""
    started = asyncio.Event()
    tools = [saves(World(), probe, started)]
    async with harness(tools=tools, script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        task = asyncio.create_task(h.advance(run_id))
        await asyncio.wait_for(started.wait(), 20)
        await execute(h, "update agent.runs set fence = fence + 1 where id = %(id)s", id=run_id)
        assert await asyncio.wait_for(task, 5) == "lost"
        await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
        if over:
            await h.platform.runs.cancel(h.organization_id, run_id)
            assert (await h.settle(run_id)).state == "cancelled"
        await past_its_lease(h)
        yield h, run_id


async def past_its_lease(h: Harness) -> None:
    await execute(
        h,
        "update agent.idempotency_keys set lease_expires_at = clock_timestamp() - interval '5 min' where state = 'processing'",
    )


async def kinds(h: Harness, run_id: UUID) -> list[str]:
    return [effect["kind"] for effect in (await h.tree(run_id)).effects]


@pytest.mark.guarantee("J3", "J5")
async def test_a_probe_that_finds_the_effect_completes_the_call_and_no_operator_is_asked(database: str) -> None:
    probe = Probes(Done(id="note-1"))
    async with abandoned(database, probe) as (h, run_id):
        await h.platform.sweeper.runs()
        assert probe.asked == ["milk"]
        [row] = await journal(h, run_id)
        assert (row["state"], row["outcome_status"]) == ("completed", "ok")
        assert b"note-1" in bytes(row["output"])
        assert await h.uncertain(run_id) == []
        assert await kinds(h, run_id) == ["completed"]
        tree = await h.tree(run_id)
        assert tree.run["has_uncertain"] is False
        assert [(span["state"], span["status"]) for span in tree.spans if span["kind"] == "tool"] == [("closed", "ok")]
        await h.platform.sweeper.runs()
        assert probe.asked == ["milk"]
        assert (await h.platform.audit.verify(h.organization_id, run_id, user_id=h.user_id)).whole


@pytest.mark.guarantee("J3", "J5")
async def test_a_probe_that_finds_nothing_frees_the_call(database: str) -> None:
    probe = Probes(None)
    async with abandoned(database, probe) as (h, run_id):
        await h.platform.sweeper.runs()
        assert await journal(h, run_id) == []
        assert await kinds(h, run_id) == ["released"]
        assert await h.uncertain(run_id) == []


@pytest.mark.guarantee("J3", "J5")
async def test_a_probe_that_cannot_tell_leaves_the_call_to_an_operator_in_the_same_sweep(database: str) -> None:
    probe = Probes(ConnectionResetError("the line broke"))
    async with abandoned(database, probe) as (h, run_id):
        await h.platform.sweeper.runs()
        assert len(await h.uncertain(run_id)) == 1
        assert await kinds(h, run_id) == ["uncertain"]
        assert probe.asked == ["milk"]


@pytest.mark.guarantee("J5")
async def test_a_call_is_asked_about_by_one_sweep_at_a_time_and_settled_once(database: str) -> None:
    probe = Probes(Done(id="note-1"))
    async with abandoned(database, probe) as (h, run_id):
        probe.gate.clear()
        first = asyncio.create_task(h.platform.sweeper.runs())
        await asyncio.wait_for(probe.entered.wait(), 20)
        await asyncio.gather(*(h.platform.sweeper.runs() for _ in range(3)))
        assert [row["state"] for row in await journal(h, run_id)] == ["processing"]
        probe.gate.set()
        await asyncio.wait_for(first, 10)
        assert (probe.asked, await kinds(h, run_id)) == (["milk"], ["completed"])


@pytest.mark.guarantee("J5")
async def test_a_sweep_that_dies_while_it_asks_leaves_the_call_to_the_next(database: str) -> None:
    probe = Probes(Done(id="note-1"))
    async with abandoned(database, probe) as (h, run_id):
        probe.gate.clear()
        dying = asyncio.create_task(h.platform.sweeper.runs())
        await asyncio.wait_for(probe.entered.wait(), 20)
        dying.cancel()
        await asyncio.wait({dying})
        probe.gate.set()
        await h.platform.sweeper.runs()
        assert [row["state"] for row in await journal(h, run_id)] == ["processing"]  # under the lease of the dead sweep
        await past_its_lease(h)
        await h.platform.sweeper.runs()
        assert await kinds(h, run_id) == ["completed"]


@pytest.mark.guarantee("J5")
async def test_a_later_owner_of_the_call_is_not_overruled_by_a_slow_probe(database: str) -> None:
    probe = Probes(None)
    async with abandoned(database, probe) as (h, run_id):
        probe.gate.clear()
        sweep = asyncio.create_task(h.platform.sweeper.runs())
        await asyncio.wait_for(probe.entered.wait(), 20)
        await execute(
            h,
            "update agent.idempotency_keys set attempt = attempt + 1, lease_expires_at = clock_timestamp() + interval '1 min'",
        )
        probe.gate.set()
        await asyncio.wait_for(sweep, 10)
        assert [(row["state"], row["attempt"]) for row in await journal(h, run_id)] == [("processing", 2)]
        assert await kinds(h, run_id) == []


@pytest.mark.guarantee("J1", "J2")
async def test_an_open_run_reads_what_the_probe_found_as_its_calls_answer(database: str) -> None:
    probe = Probes(Done(id="note-1"))
    async with abandoned(database, probe, over=False) as (h, run_id):
        await h.platform.sweeper.runs()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", None)
        assert any("note-1" in text for role, text in await h.messages(run_id) if role == "tool")
        assert await kinds(h, run_id) == ["completed"]


@pytest.mark.parametrize("lost", ["contract", "arguments", "tool"])
async def test_a_call_of_which_nothing_is_known_any_more_goes_to_the_operator(database: str, lost: str) -> None:
    probe = Probes(Done(id="note-1"))
    async with abandoned(database, probe) as (h, run_id):
        organization_id = h.organization_id
        match lost:
            case "contract":
                await execute(h, "delete from agent.tool_contracts")
            case "arguments":
                await execute(
                    h, 'update agent.idempotency_keys set arguments_text = \'{"text":"tea"}\', proposal_id = null'
                )
            case _:
                async with harness(tools=[], script=[], database_url=database) as other:
                    await other.platform.sweeper.runs()
        await h.platform.sweeper.runs()
        assert len(await h.platform.journal.list_uncertain(organization_id, run_id=run_id)) == 1
        assert probe.asked == []
