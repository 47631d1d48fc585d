"""The model's words are told in pieces, in order, before the append that stores them, and never at the cost of the turn."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from agentic.contract.errors import StorageUnavailable
from agentic.runtime.agent.words import GATHER_BYTES, Words
from agentic.services.runs.models import Lease

LEASE = Lease(organization_id=uuid4(), run_id=uuid4(), fence=1, wake_seq=0)
NEVER_S = 3600.0


class Store:
    """Keeps what it is told; ``gate`` lets a write through, ``broken`` refuses it."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, Any]] = []
        self.asked = asyncio.Event()
        self.wrote = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken = False

    async def tell(self, lease: Lease, data: Mapping[str, Any]) -> bool:
        assert lease == LEASE
        self.asked.set()
        await self.gate.wait()
        self.wrote.set()
        if self.broken:
            raise StorageUnavailable("gone")
        self.told.append(data)
        return True


async def test_small_pieces_are_gathered_until_their_time_is_over() -> None:
    store = Store()
    words = Words(store, LEASE, gather_s=0)
    words.begin()
    for piece in ("He", "ll", "o"):
        words.said(piece)
    async with asyncio.timeout(10):
        await store.wrote.wait()
    assert store.told == [{"request": 1, "offset": 0, "text": "Hello"}]


async def test_a_kilobyte_is_told_at_once_and_the_next_piece_says_where_it_goes_on() -> None:
    store = Store()
    words = Words(store, LEASE, gather_s=NEVER_S)
    words.begin()
    words.said("ä" * (GATHER_BYTES // 2))
    async with asyncio.timeout(10):
        await store.wrote.wait()
    words.said("end")
    await words.settle()
    [rest] = words.take()
    assert store.told == [{"request": 1, "offset": 0, "text": "ä" * (GATHER_BYTES // 2)}]
    assert rest == {"request": 1, "offset": GATHER_BYTES // 2, "text": "end"}


async def test_what_is_gathered_goes_with_the_append_and_is_not_told_twice() -> None:
    store = Store()
    words = Words(store, LEASE, gather_s=NEVER_S)
    words.begin()
    words.said("Hello")
    await asyncio.sleep(0)
    await words.settle()
    assert [piece["text"] for piece in words.take()] == ["Hello"]
    assert not words.take()
    assert not store.told


async def test_an_append_waits_for_the_piece_under_way() -> None:
    store = Store()
    store.gate.clear()
    words = Words(store, LEASE, gather_s=0)
    words.begin()
    words.said("Hello")
    async with asyncio.timeout(10):
        await store.asked.wait()
        settled = asyncio.create_task(words.settle())
        await asyncio.sleep(0)
        assert not settled.done()
        store.gate.set()
        await settled
    assert [piece["text"] for piece in store.told] == ["Hello"]


async def test_a_store_that_hangs_is_left_after_a_moment() -> None:
    store = Store()
    store.gate.clear()
    words = Words(store, LEASE, gather_s=0, patience_s=0.01)
    words.begin()
    words.said("Hello")
    async with asyncio.timeout(10):
        await store.asked.wait()
        await words.settle()
    assert not store.told


async def test_a_store_that_fails_drops_the_piece_says_so_and_the_gap_shows(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.broken = True
    words = Words(store, LEASE, gather_s=0)
    words.begin()
    words.said("secret")
    async with asyncio.timeout(10):
        await store.wrote.wait()
    await words.settle()
    assert "could not be told (StorageUnavailable)" in caplog.text
    assert "secret" not in caplog.text
    words.said("rest")
    await words.settle()
    assert words.take() == ({"request": 1, "offset": 6, "text": "rest"},)


async def test_words_of_a_failed_answer_are_not_told_and_the_next_answer_begins_anew() -> None:
    store = Store()
    words = Words(store, LEASE, gather_s=NEVER_S)
    words.begin()
    words.said("Dear")
    words.give_up()
    await words.settle()
    assert not words.take()
    words.begin()
    words.said("Hi")
    await words.settle()
    assert words.take() == ({"request": 2, "offset": 0, "text": "Hi"},)


async def test_without_a_store_nothing_is_gathered() -> None:
    words = Words(None, LEASE)
    words.begin()
    words.said("Hello")
    await words.settle()
    assert not words.take()
