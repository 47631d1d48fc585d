"""Eight servers are prepared at a time, two processes start at a time, and processes in a queue keep nobody else waiting."""

import asyncio
from contextlib import AsyncExitStack

from agentic.services.mcp.slots import PREPARATIONS, PROCESS_STARTS, SHARE, Slots


async def held(slots: Slots, *, starts_process: bool, of: int) -> int:
    """How many of that many come to hold a slot while none lets go."""
    inside = 0
    leave = asyncio.Event()

    async def hold() -> None:
        nonlocal inside
        async with slots.preparing(starts_process=starts_process):
            inside += 1
            await leave.wait()

    tasks = [asyncio.create_task(hold()) for _ in range(of)]
    for _ in range(10):
        await asyncio.sleep(0)
    count = inside
    leave.set()
    await asyncio.gather(*tasks)
    assert inside == of
    return count


async def test_eight_are_prepared_at_a_time() -> None:
    assert await held(Slots(), starts_process=False, of=12) == PREPARATIONS == 8


async def test_two_processes_start_at_a_time_and_a_queue_of_them_leaves_room_for_others() -> None:
    slots = Slots()
    async with AsyncExitStack() as stack:
        for _ in range(PROCESS_STARTS):
            await stack.enter_async_context(slots.preparing(starts_process=True))
        queued = [asyncio.create_task(_once(slots)) for _ in range(20)]
        await asyncio.sleep(0)
        assert await held(slots, starts_process=False, of=6) == 6
        assert not any(task.done() for task in queued)
    await asyncio.gather(*queued)


async def test_an_organization_whose_servers_hang_leaves_room_for_the_others() -> None:
    slots = Slots()
    async with AsyncExitStack() as stack:
        first, second = slots.share(), slots.share()
        for _ in range(SHARE):
            await stack.enter_async_context(first.preparing(starts_process=False))
        more = [asyncio.create_task(_once(first)) for _ in range(10)]
        await asyncio.sleep(0)
        assert await held(second, starts_process=True, of=PROCESS_STARTS) == PROCESS_STARTS
        assert not any(task.done() for task in more)
    await asyncio.gather(*more)
    both = await asyncio.gather(*(held(each, starts_process=False, of=SHARE) for each in (first, second)))
    assert both == [SHARE, SHARE]


async def test_whoever_is_cancelled_in_the_queue_takes_no_slot_along() -> None:
    slots = Slots(preparations=1, process_starts=1)
    async with slots.preparing(starts_process=True):
        waiting = asyncio.create_task(_once(slots))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    await _once(slots)


async def _once(slots: Slots) -> None:
    async with slots.preparing(starts_process=True):
        pass
