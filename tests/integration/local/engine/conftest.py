"""Fixtures of the engine's tests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from engine_bench import Bench


@pytest.fixture
async def bench(empty_database: str) -> AsyncIterator[Bench]:
    async with contextlib.AsyncExitStack() as stack:
        bench = Bench(dsn=empty_database, stack=stack)
        await bench.engine.start()
        bench.client = bench.new_client()
        try:
            yield bench
        finally:
            await bench.engine.stop(grace_s=0)
