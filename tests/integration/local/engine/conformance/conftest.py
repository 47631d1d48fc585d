"""The server of the conformance suite: the embedded engine always, a real one where `INNGEST_CONFORMANCE_URL` names it.

The address is that of an Inngest server in development mode that can reach apps on this machine's loopback.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator

import pytest
from conformance_server import Server
from engine_bench import Bench

EXTERNAL = os.environ.get("INNGEST_CONFORMANCE_URL", "").rstrip("/")
_REAL = pytest.mark.skipif(not EXTERNAL, reason="INNGEST_CONFORMANCE_URL names no Inngest server")


@pytest.fixture(params=["embedded", pytest.param("real", marks=_REAL)])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "real":
            yield Server(url=EXTERNAL, stack=stack)
            return
        bench = Bench(dsn=request.getfixturevalue("empty_database"), stack=stack)
        await bench.engine.start()
        stack.push_async_callback(bench.engine.stop, grace_s=0)
        yield Server(url=bench.engine.url, stack=stack)
