"""A bench for the embedded engine: a fresh database, real SDK apps on loopback, a clock that can jump."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import inngest
import inngest.fast_api
from fastapi import FastAPI

from agentic.local.engine import FunctionEngine, RunView
from agentic.local.engine.server import bind, serving

WAIT_S = 30.0


class JumpingClock:
    """The real time, moved forward on request."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead.total_seconds()

    def jump(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


class Bench:
    """One engine and the apps that a test serves to it."""

    def __init__(self, *, dsn: str, stack: contextlib.AsyncExitStack) -> None:
        self.dsn = dsn
        self.clock = JumpingClock()
        self.engine = self.build_engine()
        self._stack = stack
        self.client: inngest.Inngest

    def build_engine(self, **settings: Any) -> FunctionEngine:
        quick: dict[str, Any] = {
            "backoff": lambda failures: 0.01,
            "reconnect": lambda tries: 0.02,
            "poll_s": 0.05,
            "clock": self.clock,
        }
        return FunctionEngine(dsn=self.dsn, **{**quick, **settings})

    async def restart_engine(self, **settings: Any) -> None:
        """Stop the engine in good order and go on with another one at the same address."""
        port = int(self.engine.url.rpartition(":")[2])
        await self.engine.stop(grace_s=0)
        self.engine = self.build_engine(port=port, **settings)
        await self.engine.start()

    def new_client(self, app_id: str = "shop") -> inngest.Inngest:
        url = self.engine.url
        client = inngest.Inngest(app_id=app_id, is_production=False, api_base_url=url, event_api_base_url=url)
        # The SDK has no public way to close its connections, and a leaked socket is an error here.
        self._stack.push_async_callback(client._http_client._http_client.aclose)
        return client

    async def serve(self, *functions: inngest.Function[Any], client: inngest.Inngest | None = None) -> str:
        """Serve functions as an app on a free port and register it; its address."""
        app = FastAPI()
        inngest.fast_api.serve(app, client or self.client, list(functions))
        url = await self.serve_app(app)
        await self.engine.sync(url)
        return url

    async def serve_app(self, app: Any) -> str:
        listener = bind("127.0.0.1", 0)
        await self._stack.enter_async_context(serving(app, listener))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest"

    async def send(self, name: str, data: dict[str, Any] | None = None, *, event_id: str = "") -> list[str]:
        return await self.client.send(inngest.Event(name=name, data=data or {}, id=event_id))

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncIterator[Bench]:
        """The same bench, for apps that are gone after the block."""
        async with contextlib.AsyncExitStack() as stack:
            other = copy.copy(self)
            other._stack = stack
            yield other

    def jump(self, seconds: float) -> None:
        """Move the engine's clock forward."""
        self.clock.jump(seconds)
        self.engine.wake()

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds, or fail."""
        async with asyncio.timeout(WAIT_S):
            while not await holds():  # noqa: ASYNC110 - the condition lies in the database or in another process
                await asyncio.sleep(0.01)

    async def run_of(self, function_id: str, status: str = "completed") -> RunView:
        """The newest run of a function, once it has this status."""
        found: list[RunView] = []

        async def reached() -> bool:
            found[:] = (await self.engine.runs(function_id))[-1:]
            if found and found[0].status not in ("running", status):
                raise AssertionError(f"{function_id} is {found[0].status}: {found[0].result}")
            return bool(found) and found[0].status == status

        await self.until(reached)
        return found[0]

    async def waiting(self, function_id: str, step: str) -> RunView:
        """The newest run of a function, once it sleeps or waits in this step."""
        found: list[RunView] = []

        async def reached() -> bool:
            found[:] = (await self.engine.runs(function_id))[-1:]
            return bool(found) and step in found[0].waits_for

        await self.until(reached)
        return found[0]
