"""Events of the same moment leave together, and a bus that refuses or stands still keeps nobody: their rows wait for the sweep (W1)."""

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import StorageUnavailable
from agentic.contract.events import Event, EventName
from agentic.services.outbox.service import Outbox


class Rows:
    """What became of each row; ``away`` loses the database."""

    def __init__(self) -> None:
        self.marked: list[tuple[str, list[UUID]]] = []
        self.away = False

    async def take(self, ids: Sequence[UUID], *, due: bool, age_s: float, again_s: float, limit: int) -> list[Event]:
        raise AssertionError("rows that were just committed are not read again")

    async def sent(self, ids: Sequence[UUID]) -> None:
        if self.away:
            raise StorageUnavailable("the database is away")
        self.marked.append(("sent", list(ids)))

    async def failed(self, ids: Sequence[UUID], error: str) -> None:
        self.marked.append((error, list(ids)))


class Bus:
    """Takes events when it is let to, or refuses them."""

    def __init__(self) -> None:
        self.requests: list[list[Event]] = []
        self.refusing = False
        self.open = asyncio.Event()
        self.asked = asyncio.Event()

    async def send(self, events: Sequence[Event]) -> None:
        self.asked.set()
        await self.open.wait()
        if self.refusing:
            raise ConnectionError("nobody is there")
        self.requests.append(list(events))


def event() -> Event:
    return Event(name=EventName.PROVIDER_JOB_COMPLETED, organization_id=uuid4(), run_id=uuid4(), job_id=uuid4())


async def test_what_is_committed_while_a_request_is_under_way_leaves_in_one_request_and_is_marked_by_one_statement() -> (
    None
):
    rows, bus = Rows(), Bus()
    outbox = Outbox(store=rows, bus=bus, send_s=30)
    first, second, third = event(), event(), event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(outbox.send([first]))
        await bus.asked.wait()
        group.create_task(outbox.send([second]))
        group.create_task(outbox.send([third]))
        await asyncio.sleep(0)
        bus.open.set()
    assert bus.requests == [[first], [second, third]]
    assert rows.marked == [("sent", [first.id]), ("sent", [second.id, third.id])]


@pytest.mark.guarantee("W1")
async def test_a_bus_that_refuses_leaves_the_rows_to_the_sweep_and_troubles_nobody_who_committed() -> None:
    rows, bus = Rows(), Bus()
    outbox = Outbox(store=rows, bus=bus)
    bus.refusing = True
    bus.open.set()
    refused, sent = event(), event()
    async with asyncio.timeout(10):
        await outbox.send([refused])
        bus.refusing = False
        await outbox.send([sent])
    assert rows.marked == [("ConnectionError", [refused.id]), ("sent", [sent.id])]


@pytest.mark.guarantee("W1")
async def test_a_bus_that_stands_still_is_given_up_and_what_comes_after_it_is_sent() -> None:
    rows, bus = Rows(), Bus()
    outbox = Outbox(store=rows, bus=bus, send_s=0.01)
    stuck, sent = event(), event()
    async with asyncio.timeout(10):
        while not rows.marked:
            await outbox.send([stuck])
        bus.open.set()
        while rows.marked[-1][0] != "sent":
            await outbox.send([sent])
    assert rows.marked[0] == ("TimeoutError", [stuck.id])
    assert sent in bus.requests[-1]


@pytest.mark.guarantee("W1")
async def test_a_mark_that_could_not_be_made_is_nothing_to_whoever_committed() -> None:
    rows, bus = Rows(), Bus()
    outbox = Outbox(store=rows, bus=bus)
    bus.open.set()
    rows.away = True
    async with asyncio.timeout(10):
        await outbox.send([event()])
    assert len(bus.requests) == 1
    assert rows.marked == []


async def test_nothing_is_asked_of_anybody_for_no_event() -> None:
    rows, bus = Rows(), Bus()
    await Outbox(store=rows, bus=bus).send([])
    assert not bus.asked.is_set()
