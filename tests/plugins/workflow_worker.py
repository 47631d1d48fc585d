"""A worker that dies at one statement of one node: ``workflow_worker:run``, told ``DATABASE ENGINE PORT POINT LEDGER``.

It dies once: the next one with the same ledger lives. Its app is also what a test reads the tools and the workflow from.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import inngest
from fastapi import FastAPI
from pydantic import BaseModel, JsonValue

from agentic.bootstrap import App, function_ports, open_platform
from agentic.contract.principal import Principal
from agentic.functions.bus import InngestBus
from agentic.functions.serve import mount
from agentic.local.engine.server import bind, serving
from agentic.runtime.workflow import Workflow, WorkflowContext, Workflows, tool_step
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool, vendor_tool
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.storage.database import Database
from agentic.storage.queries import load_queries
from agentic.testing import EffectLedger, die
from workflow_stage import QUICK, new_client

POINTS = (
    "before take 1",
    "after take 1",
    "before park 1",
    "after park 1",
    "before take 2",
    "after take 2",
    "before claim_body 1",
    "after claim_body 1",
    "before the effect",
    "after the effect",
    "before end_complete 1",
    "after end_complete 1",
    "before finish 1",
    "after finish 1",
)
"""Where it dies: around statements, the first or second time this process makes them, and inside the handler. A call that a person was
asked about is made under its node's second lease."""
RUN = "workflow_worker:run"
"""The process, for whoever forks it."""
SLOW = "slow"
"""In place of a point: it does not die by itself, and its tools take their time."""
_GROUPS = {"take": "workflow", "park": "runs", "finish": "runs", "claim_body": "calls", "end_complete": "calls"}


class Words(BaseModel):
    text: str


class Done(BaseModel):
    id: str


class Places:
    """Where this process dies, if nobody has before."""

    def __init__(self, point: str, ledger: Path) -> None:
        self.point = point
        self.slow_s = 0.15 if point == SLOW else 0.0
        self.world = EffectLedger(ledger)
        self._visits = EffectLedger(Path(f"{ledger}.visits"))

    def at(self, place: str) -> None:
        """Die here, once."""
        if place == self.point and self._visits.record("death", key=place):
            die()


class DyingDatabase(Database):
    """Dies before or after a statement."""

    places: Places
    counts: ClassVar[Counter[str]] = Counter()

    async def all(self, statement: Any, params: Mapping[str, Any]) -> list[Any]:
        """As the database's own."""
        return await self._around([statement], lambda: Database.all(self, statement, params))  # type: ignore[no-any-return]

    async def atomic(self, statements: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Any]:
        """As the database's own."""
        made = [statement for statement, _ in statements]
        return await self._around(made, lambda: Database.atomic(self, statements))  # type: ignore[no-any-return]

    async def _around(self, statements: Sequence[str], run: Callable[[], Any]) -> Any:
        names = [
            name
            for name, group in _GROUPS.items()
            if any(load_queries(group)[name] in statement for statement in statements)
        ]
        for name in names:
            self.counts[name] += 1
            self.places.at(f"before {name} {self.counts[name]}")
        rows = await run()
        for name in names:
            self.places.at(f"after {name} {self.counts[name]}")
        return rows


def acts_for(event: inngest.Event) -> Principal:
    """As the test sent it."""
    return Principal(organization_id=UUID(str(event.data["organization_id"])), user_id=UUID(str(event.data["user_id"])))


STORY = Workflow(name="story", tools=("mail.send", "notes.save"), acts_for=acts_for)


def tools(places: Places) -> list[Tool]:
    """A send that asks and whose vendor knows keys, and a write that runs at once and must not run twice."""

    async def act(ctx: CallContext, args: Words, *, key: str | None) -> Done:
        places.at("before the effect")
        await asyncio.sleep(places.slow_s)
        places.world.record(ctx.tool, {"text": args.text}, key=key)
        await asyncio.sleep(places.slow_s)
        places.at("after the effect")
        return Done(id=ctx.tool)

    @vendor_tool(
        "mail.send", "Sends.", side_effects="send", connection="mail", idempotency="conditional", vendor_key_ttl_s=3600,
        repeatable=False, timeout_s=1,
    )  # fmt: skip
    async def mail(ctx: CallContext, args: Words) -> Done:
        return await act(ctx, args, key=ctx.idempotency_key)

    @internal_tool("notes.save", "Saves.", side_effects="write", risk="low", repeatable=False, timeout_s=1)
    async def note(ctx: CallContext, args: Words) -> Done:
        return await act(ctx, args, key=None)

    return [mail, note]


async def body(ctx: WorkflowContext) -> JsonValue:
    """One call, of the tool that the event names."""
    result = await tool_step(ctx, "call", str(ctx.event.data["tool"]), {"text": "hello"}, continue_on_error=True)
    return "done" if result.error is None else str(result.error.code)


async def pair(ctx: WorkflowContext) -> JsonValue:
    """Both calls, side by side, with the words that the event brings; then one more."""
    words = {"text": str(ctx.event.data["text"])}
    both = await ctx.side_by_side(
        lambda: tool_step(ctx, "mail", "mail.send", words, continue_on_error=True),
        lambda: tool_step(ctx, "note", "notes.save", words, continue_on_error=True),
    )
    last = await tool_step(ctx, "last", "notes.save", words, continue_on_error=True)
    return ["done" if result.error is None else str(result.error.code) for result in (*both, last)]


def functions(client: inngest.Inngest, workflows: Workflows) -> list[inngest.Function[Any]]:
    """The story's function."""

    @client.create_function(fn_id="story", trigger=inngest.TriggerEvent(event="story"), retries=4)
    async def story(ctx: inngest.Context) -> JsonValue:
        return await workflows.run(ctx, STORY, body)

    @client.create_function(fn_id="pair", trigger=inngest.TriggerEvent(event="pair"), retries=4)
    async def paired(ctx: inngest.Context) -> JsonValue:
        return await workflows.run(ctx, STORY, pair)

    return [story, paired]


def make(places: Places) -> App:
    """The app."""
    return App(tools=tools(places), functions=functions, connections=FixedConnections())


async def main(database_url: str, engine_url: str, port: int, point: str, ledger: str) -> None:
    """Serve until the kill."""
    places = Places(point, Path(ledger))
    DyingDatabase.places = places
    client = new_client(engine_url)
    async with open_platform(
        make(places),
        database_url,
        bus=InngestBus(client),
        timings=QUICK,
        invoker_settings=InvokerSettings(claim_grace_s=1),
        stores_on=DyingDatabase,
    ) as platform:
        web = FastAPI(openapi_url=None)
        of_app = function_ports(platform).of_app
        assert of_app is not None
        mount(web, client, of_app(client))
        listener = bind("127.0.0.1", port)
        async with serving(web, listener):
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/api/inngest", flush=True)
            await asyncio.Event().wait()


def run() -> None:
    """The process."""
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]))
