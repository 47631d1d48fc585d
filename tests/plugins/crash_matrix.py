"""Kills a worker at every point of a run, for each class and watermark, and lets the next worker go on.

A driver process: it imports everything once and forks, so that a cell costs two forks and its waits. ``python -m crash_matrix FOLDER``
writes one JSON object per cell there. The provider is a process of its own that counts what really happened. Nobody tells the next
worker which run to lead: it sweeps, and leads what it is nudged to.
"""

import asyncio
import encodings.idna
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import agno.team
from pydantic import BaseModel

from agentic.bootstrap import App, Platform, open_platform
from agentic.contract.principal import Principal, Role
from agentic.local.crash_points import AFTER_ANSWER, CrashPoint
from agentic.local.crash_points.dying import DyingBus, DyingDatabase, dying_model, dying_tool
from agentic.runtime.agent.agno import runtime
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.runtime.agent.sweeps import Sweeps
from agentic.services.approvals.models import Verdict
from agentic.services.connections.fixed import FixedConnections
from agentic.services.outbox.service import EventBus
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.handlers.http import GovernedClient
from agentic.storage.database import Database
from agentic.storage.pool import Pool
from agentic.testing import EffectLedger, RecordingBus
from time_passes import time_passes

CLASSES = ("idempotent", "conditional", "non_idempotent")
WATERMARKS = ("at_claim", "at_transport")
AT_ONCE = 6
LIMIT_S = 40
ORGANIZATION, REQUESTER, APPROVER = UUID(int=1), UUID(int=2), UUID(int=3)
assert agno.team.__name__ and encodings.idna.__name__ and runtime.__name__  # imported before the forks


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One death, and what became of the run.

    Attributes:
        asked: questions that were put to a person, all of them together.
        whole: the run's record verifies.
    """

    cls: str
    watermark: str
    point: str
    killed: bool = False
    run: str = ""
    claim: str = ""
    effects: int = 0
    requests: int = 0
    asked: int = 0
    whole: bool = False


class Words(BaseModel):
    text: str


class Done(BaseModel):
    number: int


def cells() -> list[Cell]:
    """Every cell that exists: only the points of the call itself can tell one watermark from the other."""
    return [
        Cell(cls=cls, watermark=watermark, point=point)
        for cls in CLASSES
        for watermark in WATERMARKS
        for point in CrashPoint
        if watermark == "at_transport" or (point in _OF_THE_CALL and "watermark" not in point)
    ]


_OF_THE_CALL = frozenset(CrashPoint(point) for point in AFTER_ANSWER) - {
    CrashPoint.AFTER_DECISION,
    CrashPoint.BEFORE_RESUME,
    CrashPoint.AFTER_RESUME,
    CrashPoint.BEFORE_FINISH,
    CrashPoint.AFTER_FINISH,
}


# -- the provider ------------------------------------------------------------------------------------------------------


class Provider(BaseHTTPRequestHandler):
    """Counts requests and effects; an idempotent tool's effect is a put, a conditional one's is kept under its key."""

    folder: Path

    def do_POST(self) -> None:
        """Accept, note the effect, and kill the client when it asks for that."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = self.headers["X-Cell"]
        requests, effects = (
            EffectLedger(self.folder / f"{name}.requests"),
            EffectLedger(self.folder / f"{name}.effects"),
        )
        requests.record("request")
        key = {"idempotent": body.decode(), "conditional": self.headers["Idempotency-Key"], "non_idempotent": None}
        effects.record("effect", key=key[self.headers["X-Class"]])
        if self.headers["X-Kill"] != "0":
            os.kill(int(self.headers["X-Kill"]), signal.SIGKILL)
            return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


# -- the workers -------------------------------------------------------------------------------------------------------


class Trigger:
    """Whether the first worker dies at its point now: it is pulled once the run has come far enough."""

    def __init__(self) -> None:
        self.pulled = False

    def __call__(self, run_id: UUID | None) -> bool:
        """Implements ``Armed``."""
        return self.pulled


def app(cell: Cell, origin: str, trigger: Trigger) -> App:
    """A read, then a tool of the cell's class over HTTP that must ask, and a model that words everything anew whenever it is asked."""
    extra: dict[str, Any] = {"vendor_key_ttl_s": 3600} if cell.cls == "conditional" else {}
    point = CrashPoint(cell.point)

    @internal_tool("act.look", "Look.")
    async def look(ctx: CallContext, args: Words) -> Done:
        return Done(number=0)

    @internal_tool(
        "act.do", "Act.", side_effects="write", risk="high", repeatable=False, idempotency=cell.cls, watermark=cell.watermark,
        timeout_s=30, approval_preview=True, preview=_preview, **extra,
    )  # fmt: skip
    async def act(ctx: CallContext, args: Words) -> Done:
        kill = str(os.getpid()) if trigger.pulled and point is CrashPoint.EFFECT_ACCEPTED else "0"
        headers = {
            "X-Cell": _name(cell), "X-Class": cell.cls, "X-Kill": kill, "Idempotency-Key": ctx.idempotency_key or "",
        }  # fmt: skip
        client = GovernedClient(
            origin=origin, before_first_byte=ctx.before_first_byte, deadline=ctx.deadline, clock=ctx.clock
        )
        async with client:
            await client.post_bytes("/act", json.dumps({"text": args.text}).encode(), headers=headers)
        return Done(number=1)

    tools: list[Tool] = [look, dying_tool(act, point, trigger)]
    script: list[Turn] = [
        Calls([Call("act.look", {"text": "there"}, reword=("text",))]),
        Calls([Call("act.do", {"text": "hello"}, reword=("text",))]),
        Say("Done."),
    ]

    def model() -> object:
        scripted = ScriptedModel(script=script, reword=True)
        return dying_model(scripted, trigger) if point is CrashPoint.MODEL_STREAM else scripted

    return App(tools=tools, models={"scripted": model}, connections=FixedConnections())


async def _preview(ctx: CallContext, args: Words) -> str:
    return args.text


def opened(cell: Cell, url: str, origin: str, trigger: Trigger, bus: EventBus) -> AbstractAsyncContextManager[Platform]:
    """A worker's platform."""

    def dying(pool: Pool) -> Database:
        return DyingDatabase(pool, CrashPoint(cell.point), trigger)

    return open_platform(app(cell, origin, trigger), url, bus=bus, max_connections=2, stores_on=dying)


async def start(cell: Cell, url: str, origin: str, known: Callable[[str], object]) -> None:
    """Starts the cell's run and leads it until the death; the run's id is made known before."""
    trigger = Trigger()
    async with opened(cell, url, origin, trigger, RecordingBus()) as platform:
        await platform.approval_store.put_member(ORGANIZATION, REQUESTER, Role.MEMBER)
        await platform.approval_store.put_member(ORGANIZATION, APPROVER, Role.APPROVER)
        agent = AgentDefinition(name="tested", instructions="Act.", model="scripted", tools=("act.look", "act.do"))
        principal = Principal(organization_id=ORGANIZATION, user_id=REQUESTER)
        started = await platform.runs.start(agent, "Go.", principal=principal, request_key=_name(cell))
        known(str(started.run_id))
        trigger.pulled = cell.point not in AFTER_ANSWER
        await platform.leader.advance(ORGANIZATION, started.run_id)
    bus: EventBus = DyingBus() if cell.point == CrashPoint.AFTER_DECISION else RecordingBus()
    async with opened(cell, url, origin, trigger, bus) as platform:
        await decide(platform, started.run_id)
        trigger.pulled = True
        await platform.leader.advance(ORGANIZATION, started.run_id)


async def decide(platform: Platform, run_id: UUID) -> int:
    """A person approves whatever the run asks; how many questions there were."""
    pending = await platform.approvals.find(ORGANIZATION, run_id=run_id, status="pending")
    for approval in pending:
        await platform.approvals.decide(ORGANIZATION, approval.id, user_id=APPROVER, verdict=Verdict("approved"))
    return len(pending)


async def next_worker(cell: Cell, url: str, origin: str, run_id: UUID) -> str:
    """Goes on until the run ends; what stands then, as JSON."""
    bus = RecordingBus()
    async with opened(cell, url, origin, Trigger(), bus) as platform:
        sweeps = Sweeps(
            runs=platform.run_store,
            approvals=platform.approvals,
            journal=platform.journal,
            outbox=platform.outbox,
            quiet_s=0.2,
        )
        await time_passes(platform.database, run_id)
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            tree = await platform.runs.tree(ORGANIZATION, run_id)
            if tree.run["finished_at"] is not None:
                break
            await decide(platform, run_id)
            await sweeps.outbox()
            await sweeps.runs()
            mine = [event for event in bus.events if event.run_id == run_id]
            bus.events.clear()
            for _ in mine:
                await platform.leader.advance(ORGANIZATION, run_id)
            if not mine:
                await asyncio.sleep(0.05)
        rows = await platform.database.all(
            "select state from agent.idempotency_keys where run_id = %(run)s", {"run": run_id}
        )
        states = ",".join(row["state"] for row in rows) or "none"
        audit = await platform.audit.verify(ORGANIZATION, run_id)
        return json.dumps(
            {"run": tree.run["state"], "claim": states, "asked": len(tree.approvals), "whole": audit.whole}
        )


# -- the driver --------------------------------------------------------------------------------------------------------


def _name(cell: Cell) -> str:
    return f"{cell.cls}-{cell.watermark}-{cell.point}"


def forked(work: Callable[[], Coroutine[Any, Any, str | None]], out: Path | None = None) -> int:
    """Run a coroutine function in a forked child, its answer into a file; how the child ended."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            answer = asyncio.run(work())
            if out is not None:
                out.write_text(answer or "")
            status = 0
        except BaseException:  # noqa: BLE001 - a child of the driver must not go on as the driver
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def one_cell(cell: Cell, url: str, origin: str, folder: Path) -> Cell:
    """One death and its recovery."""
    run_file, out = folder / f"{_name(cell)}.run", folder / f"{_name(cell)}.out"
    died = forked(lambda: start(cell, url, origin, run_file.write_text))
    run_id = UUID(run_file.read_text())
    forked(lambda: next_worker(cell, url, origin, run_id), out)
    return replace(
        cell,
        killed=os.WIFSIGNALED(died) and os.WTERMSIG(died) == signal.SIGKILL,
        effects=EffectLedger(folder / f"{_name(cell)}.effects").count(),
        requests=EffectLedger(folder / f"{_name(cell)}.requests").count(),
        **json.loads(out.read_text()),
    )


def main(arguments: Sequence[str]) -> None:
    """All cells, several at once."""
    url, folder = os.environ["CRASH_MATRIX_URL"], Path(arguments[0])
    gc.collect()
    gc.freeze()  # else each fork walks, and so copies, all of it
    server = HTTPServer(("127.0.0.1", 0), Provider)
    origin = f"http://127.0.0.1:{server.server_port}"
    Provider.folder = folder
    provider = os.fork()
    if provider == 0:
        server.serve_forever()
    waiting, running = cells(), dict[int, Cell]()
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                cell = waiting.pop(0)
                pid = os.fork()
                if pid == 0:
                    try:
                        result = one_cell(cell, url, origin, folder)
                        (folder / f"{_name(cell)}.cell").write_text(json.dumps(asdict(result)))
                    except Exception:  # noqa: BLE001 - a child of the driver must not go on as the driver
                        traceback.print_exc()
                    finally:
                        os._exit(0)
                running[pid] = cell
            pid, _ = os.waitpid(-1, 0)
            running.pop(pid, None)
    finally:
        os.kill(provider, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
