"""An app's workflows on the embedded engine, in this process or in a worker that can be killed."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import IO, Any
from uuid import UUID, uuid4

import httpx
import inngest
from fastapi import FastAPI

from agentic.bootstrap import App, Platform, function_ports, open_platform
from agentic.contract.events import Event
from agentic.contract.principal import Role
from agentic.functions.bus import InngestBus
from agentic.functions.serve import mount
from agentic.local.engine import FunctionEngine, RunView
from agentic.local.engine.server import bind, serving
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.models import Verdict
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.testing import RecordingBus
from warm_processes import Process, Warm

QUICK = Timings(lease_s=1.5, renew_s=0.3, fault_retry_s=0.05)
WAIT_S = 40.0


class JumpingClock:
    """The engine's time: the real one, moved forward on request. The database's stays as it is."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        """The time it says it is."""
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic() + self.ahead.total_seconds()


@dataclass(kw_only=True)
class Stage:
    """One engine, one platform, and an app's own functions between them."""

    url: str
    engine: FunctionEngine
    platform: Platform
    clock: JumpingClock
    client: inngest.Inngest
    bus: RecordingBus
    """What was committed and not sent; ``deliver`` sends it."""
    organization_id: UUID = field(default_factory=uuid4)
    user_id: UUID = field(default_factory=uuid4)

    async def send(self, name: str, event_id: str = "", **data: Any) -> None:
        """Send an event of this organization."""
        ids = {"organization_id": str(self.organization_id), "user_id": str(self.user_id)}
        await self.client.send(inngest.Event(name=name, id=event_id, data={**ids, **data}))

    async def deliver(self, *, new_ids: bool = False) -> None:
        """Send what was committed since, as the outbox would; with new ids it counts as other events."""
        events, self.bus.events = self.bus.events, []
        await InngestBus(self.client).send(
            [Event(**{**event.model_dump(), "id": uuid4()}) if new_ids else event for event in events]
        )

    def jump(self, seconds: float) -> None:
        """Move the engine's clock forward."""
        self.clock.ahead += timedelta(seconds=seconds)
        self.engine.wake()

    async def rows(self, statement: str, **params: Any) -> list[dict[str, Any]]:
        """Look at rows."""
        return await self.platform.database.all(statement, params)

    async def execute(self, statement: str, **params: Any) -> int:
        """Change rows behind the platform's back."""
        return await self.platform.database.count(statement, params)

    async def runs(self) -> list[dict[str, Any]]:
        """Container and nodes, oldest first; a node under its own name."""
        return await self.rows(
            "select r.*, coalesce(definition ->> 'node', 'container') as node from agent.runs r order by created_at, id"
        )

    async def states(self) -> dict[str, str]:
        """Name and state of container and nodes."""
        return {run["node"]: run["state"] for run in await self.runs()}

    async def until(self, holds: Callable[[], Any], *, timeout_s: float = WAIT_S) -> None:
        """Wait until an asynchronous condition holds; where it does not come, say where the runs stand."""
        try:
            async with asyncio.timeout(timeout_s):
                while not await holds():  # noqa: ASYNC110 - the condition lies in the database
                    await asyncio.sleep(0.02)
        except TimeoutError as late:
            seen = [(view.status, view.waits_for, view.result) for view in await self.engine.runs()]
            raise AssertionError(f"runs {await self.states()}, functions {seen}") from late

    async def waiting(self, step: str) -> None:
        """Wait until a function sleeps or waits in this step."""

        async def holds() -> bool:
            return any(step in view.waits_for for view in await self.engine.runs())

        await self.until(holds)

    async def asked(self) -> None:
        """Wait until a function waits for a person."""

        async def holds() -> bool:
            return any("/approval-" in step for view in await self.engine.runs() for step in view.waits_for)

        await self.until(holds)

    async def ended(self, count: int = 1, *, timeout_s: float = WAIT_S) -> list[RunView]:
        """The functions' runs, once this many have ended."""
        found: list[RunView] = []

        async def holds() -> bool:
            found[:] = await self.engine.runs()
            return sum(view.status != "running" for view in found) >= count

        await self.until(holds, timeout_s=timeout_s)
        return found

    async def decide(self, verdict: str = "approved") -> int:
        """Answer every open question."""
        pending = await self.platform.approvals.find(self.organization_id, status="pending")
        for approval in pending:
            await self.answer(approval.id, verdict)
        return len(pending)

    async def answer(self, approval_id: UUID, verdict: str = "approved") -> None:
        """Answer one question."""
        await self.platform.approvals.decide(
            self.organization_id, approval_id, user_id=self.user_id, verdict=Verdict(verdict)
        )


@contextlib.asynccontextmanager
async def stage(database: str, app: App, *, serve: bool = True, timings: Timings = QUICK) -> AsyncIterator[Stage]:
    """An engine, a platform, and the app's functions served from this process unless ``serve`` says no."""
    async with contextlib.AsyncExitStack() as stack:
        clock = JumpingClock()
        engine = FunctionEngine(
            dsn=database, backoff=lambda _: 0.01, reconnect=lambda _: 0.05, poll_s=0.05, lease_s=1, clock=clock
        )
        await engine.start()
        stack.push_async_callback(engine.stop, grace_s=0)
        client = new_client(engine.url)
        # The SDK has no public way to close its connections, and a leaked socket is an error here.
        stack.push_async_callback(client._http_client._http_client.aclose)
        bus = RecordingBus()
        platform = await stack.enter_async_context(
            open_platform(app, database, bus=bus, timings=timings, invoker_settings=InvokerSettings(claim_grace_s=1))
        )
        made = Stage(url=database, engine=engine, platform=platform, clock=clock, client=client, bus=bus)
        await platform.approval_store.put_member(made.organization_id, made.user_id, Role.ADMIN)
        if serve:
            await engine.sync(await stack.enter_async_context(served(platform, client)))
        yield made


def new_client(engine_url: str) -> inngest.Inngest:
    """The SDK's client for an engine."""
    return inngest.Inngest(
        app_id="product", is_production=False, api_base_url=engine_url, event_api_base_url=engine_url
    )


@contextlib.asynccontextmanager
async def served(platform: Platform, client: inngest.Inngest) -> AsyncIterator[str]:
    """The app's own functions on a free port; their address."""
    of_app = function_ports(platform).of_app
    assert of_app is not None
    web = FastAPI(openapi_url=None)
    mount(web, client, of_app(client))
    listener = bind("127.0.0.1", 0)
    async with serving(web, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest"


class Worker:
    """A process that serves an app's functions.

    Args:
        process: where it runs.
    """

    def __init__(self, process: Process) -> None:
        self._process = process

    async def wait(self) -> int:
        """Its exit status; what killed it as a negative number."""
        return await asyncio.to_thread(self._process.wait, WAIT_S)


@contextlib.asynccontextmanager
async def worker(made: Stage, warm: Warm, call: str, *arguments: str, port: int = 0) -> AsyncIterator[Worker]:
    """A process that serves the app's functions, forked where its modules are imported; killed at the end if it still lives.

    Args:
        call: ``module:function``; the first line it says is the address of the functions.
    """
    with _speaking(warm, call, made.url, made.engine.url, str(port), *arguments) as (process, said):
        async with asyncio.timeout(WAIT_S):
            line = (await asyncio.to_thread(said.readline)).decode().strip()
        assert line.startswith("http"), line
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.put(line)).json().get("ok") is True
        yield Worker(process)


@contextlib.contextmanager
def _speaking(warm: Warm, call: str, *arguments: str) -> Iterator[tuple[Process, IO[bytes]]]:
    """A process and what it says on standard output."""
    reading, writing = os.pipe()
    with contextlib.ExitStack() as open_:
        said = open_.enter_context(open(reading, "rb"))
        with open(writing, "wb") as saying, open(os.devnull, "rb") as nothing, open(2, "wb", closefd=False) as error:
            streams = (nothing, saying, error)
            process = open_.enter_context(warm.started(call, *arguments, environment=os.environ, streams=streams))
        yield process, said
