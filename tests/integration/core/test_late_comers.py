"""Late comers: a worker that stalled past its leases, an operator with an older list. Neither changes what happened since."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from agentic.runtime.agent.script import Turn
from agentic.runtime.agent.timings import Timings
from agentic.services.journal.models import UncertainCall
from agentic.services.tools.context import CallContext
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute, journal

SAVE = Calls([Call("notes.save", {"text": "milk"})])
LED_LONG = Timings(lease_s=60, renew_s=50)
"""Long enough that a stalled worker is not told by its own renewal that it was replaced."""


async def replace_a_stalled_worker(h: Harness, run_id: UUID, entered: asyncio.Event, woken: asyncio.Event) -> list[str]:
    """One worker stalls in a handler until its leases are over and another has led the run; then it comes back."""
    stalled = asyncio.create_task(h.advance(run_id))
    async with asyncio.timeout(20):
        await entered.wait()
        await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
        second = await h.advance(run_id)
        woken.set()
        return [second, await stalled]


@pytest.mark.guarantee("J1", "J5", "J7")
async def test_a_stalled_worker_that_comes_back_finds_the_call_answered_and_changes_nothing(database: str) -> None:
    """The vendor has seen one key from both; the answer of the one that was there first is the call's."""
    world, entered, woken = World(), asyncio.Event(), asyncio.Event()

    async def does(_ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) > 1:
            return Done(id="in time")
        entered.set()
        await woken.wait()
        return Done(id="late")

    tool = world.write(does=does, idempotency="conditional", vendor_key_ttl_s=3600)
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database, timings=LED_LONG) as h:
        run_id = await h.start()
        assert await replace_a_stalled_worker(h, run_id, entered, woken) == ["succeeded", "lost"]
        [claim] = await journal(h, run_id)
        assert (claim["state"], claim["attempt"]) == ("completed", 2)
        assert b"in time" in claim["output"]
        assert len(world.keys) == 2
        assert len(set(world.keys)) == 1
        assert [effect["kind"] for effect in (await h.tree(run_id)).effects] == ["completed"]
        assert [text for role, text in await h.messages(run_id) if role == "tool" and "late" in text] == []


@pytest.mark.guarantee("J1", "J5")
async def test_a_stalled_worker_that_comes_back_before_its_first_byte_sends_nothing(database: str) -> None:
    world, entered, woken = World(), asyncio.Event(), asyncio.Event()
    sent: list[int] = []

    async def does(ctx: CallContext, _args: Any) -> Any:
        number = len(world.effects)
        if number == 1:
            entered.set()
            await woken.wait()
        await ctx.before_first_byte()
        sent.append(number)
        return Done(id="1")

    tool = world.write(does=does, watermark="at_transport")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database, timings=LED_LONG) as h:
        run_id = await h.start()
        assert await replace_a_stalled_worker(h, run_id, entered, woken) == ["succeeded", "lost"]
        assert sent == [2]
        assert [effect["kind"] for effect in (await h.tree(run_id)).effects] == ["completed"]


@pytest.mark.guarantee("J3", "J5")
async def test_a_stalled_worker_that_comes_back_cannot_answer_what_an_operator_owns_by_then(database: str) -> None:
    """A call that must not repeat is not repeated by the second worker; the late answer of the first has no claim to end."""
    world, entered, woken = World(), asyncio.Event(), asyncio.Event()

    async def does(_ctx: CallContext, _args: Any) -> Any:
        entered.set()
        await woken.wait()
        return Done(id="late")

    async with harness(
        tools=[world.write(does=does)], script=[SAVE, Say("Done.")], database_url=database, timings=LED_LONG
    ) as h:
        run_id = await h.start()
        assert await replace_a_stalled_worker(h, run_id, entered, woken) == ["succeeded", "lost"]
        assert len(world.effects) == 1
        [call] = await h.uncertain(run_id)
        assert call.uncertain_reason == "the worker died after the effect may have left"
        assert [effect["kind"] for effect in (await h.tree(run_id)).effects] == ["uncertain"]


@pytest.mark.guarantee("J5")
@pytest.mark.parametrize("happened", [True, False])
async def test_an_operator_who_looks_at_an_older_list_does_not_settle_a_later_attempt(
    database: str, happened: bool
) -> None:
    world = World()
    listed: list[UncertainCall] = []

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        await asyncio.Event().wait()

    async def denies(_ctx: CallContext, _args: Any) -> Any:
        listed.extend(await h.uncertain(run_id))
        await h.platform.journal.settle(
            h.organization_id, listed[0].ref, happened=False, user_id=h.user_id, evidence="the vendor has nothing"
        )
        return Done(id="1")

    tools = [world.write(does=hangs, timeout_s=0.2), world.read(does=denies)]
    script: list[Turn] = [SAVE, Calls([Call("crm.search", {"text": "milk"})]), SAVE, Say("Done.")]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).partial_reason == "outcome_unknown: notes.save"
        [again] = await h.uncertain(run_id)
        assert (again.ref, again.epoch > listed[0].epoch) == (listed[0].ref, True)
        store = h.platform.journal._store
        act = store.confirm if happened else store.deny
        assert not await act(listed[0], user_id=h.user_id, evidence="from an older list")
        assert await h.uncertain(run_id) == [again]
        assert await act(again, user_id=h.user_id, evidence="looked it up again")
