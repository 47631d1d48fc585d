"""What many bring at once is one call: nothing is brought twice, lost, or taken by a call that began before it came."""

import asyncio
from collections.abc import Sequence

import pytest

from agentic.contract.gathering import Gathering


class Calls:
    """Calls that wait to be let through, one at a time."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.problem: Exception | None = None
        self._through = asyncio.Semaphore(0)
        self._began = asyncio.Semaphore(0)

    async def take(self, things: Sequence[int]) -> None:
        self.taken.append(list(things))
        self._began.release()
        await self._through.acquire()
        if self.problem is not None:
            raise self.problem

    def let(self, how_many: int) -> None:
        for _ in range(how_many):
            self._through.release()

    async def begun(self) -> None:
        """One more call has begun."""
        await self._began.acquire()


async def test_what_comes_while_a_call_runs_goes_together_in_the_next_in_its_order() -> None:
    calls = Calls()
    gathering = Gathering(calls.take)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(gathering.bring([1]))
        await calls.begun()
        later = [group.create_task(gathering.bring([n, n + 1])) for n in (2, 4, 6)]
        await asyncio.sleep(0)
        calls.let(1)
        await calls.begun()
        await first
        assert not any(task.done() for task in later)
        calls.let(1)
    assert calls.taken == [[1], [2, 3, 4, 5, 6, 7]]


async def test_a_call_that_fails_is_told_to_those_whose_things_it_had_and_to_nobody_after() -> None:
    calls = Calls()
    gathering = Gathering(calls.take)
    async with asyncio.timeout(10):
        calls.problem = RuntimeError("it is away")
        calls.let(2)
        told = await asyncio.gather(*(gathering.bring([n]) for n in range(3)), return_exceptions=True)
        assert told == [calls.problem] * 3
        calls.problem = None
        await gathering.bring([9])
    assert calls.taken == [[0, 1, 2], [9]]


async def test_whoever_stops_waiting_takes_nothing_back() -> None:
    calls = Calls()
    gathering = Gathering(calls.take)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        impatient = group.create_task(gathering.bring([1]))
        patient = group.create_task(gathering.bring([2]))
        await calls.begun()
        impatient.cancel()
        calls.let(1)
        await patient
    assert impatient.cancelled()
    assert calls.taken == [[1, 2]]


async def test_a_failure_that_nobody_waits_for_any_more_disturbs_nobody() -> None:
    calls = Calls()
    gathering = Gathering(calls.take)
    async with asyncio.timeout(10):
        impatient = asyncio.create_task(gathering.bring([1]))
        await calls.begun()
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        calls.problem = RuntimeError("it is away")
        calls.let(1)
        second = asyncio.create_task(gathering.bring([2]))
        await calls.begun()
        calls.problem = None
        calls.let(1)
        await second
    assert calls.taken == [[1], [2]]


async def test_whoever_waits_when_the_loop_ends_is_told_so() -> None:
    calls = Calls()
    gathering = Gathering(calls.take)
    async with asyncio.timeout(10):
        waiting = [asyncio.create_task(gathering.bring([1]))]
        await calls.begun()
        waiting.append(asyncio.create_task(gathering.bring([2])))
        await asyncio.sleep(0)
        [doing] = [task for task in asyncio.all_tasks() if task.get_name() == "gathering"]
        doing.cancel()
        told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in told] == [asyncio.CancelledError] * 2
    assert calls.taken == [[1]]
