"""Kills a worker at every statement boundary of a call, for each class and watermark, and lets the next worker go on.

A driver process: it imports everything once and forks, so that a cell costs a fork and its waits. ``python -m crash_matrix FILE`` reads
nothing and writes one JSON object per cell to FILE. The provider is a process of its own that counts what really happened.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import agno.agent
from pydantic import BaseModel

from agentic.bootstrap import App, open_platform
from agentic.contract.principal import Principal, Role
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Call, Calls, Say, Turn
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool, internal_tool
from agentic.services.tools.handlers.http import GovernedClient
from agentic.storage.database import Database
from agentic.storage.pool import Pool
from agentic.storage.queries import load_queries
from agentic.testing import EffectLedger, RecordingBus, die

CLASSES = ("idempotent", "conditional", "non_idempotent")
WATERMARKS = ("at_claim", "at_transport")
POINTS = (
    "before preflight",
    "after preflight",
    "before claim",
    "after claim",
    "before mark_effect_sent",
    "after mark_effect_sent",
    "accepted by the provider",
    "before end_complete",
    "after end_complete",
    "before the next append",
    "after the next append",
)
"""Where the first worker dies. The provider kills it once it has accepted, and before it answers."""
AT_ONCE = 6
LIMIT_S = 40
TIME_PASSES = (
    "update agent.runs set lease_expires_at = clock_timestamp() where id = %(run)s and lease_expires_at is not null",
    "update agent.idempotency_keys set lease_expires_at = clock_timestamp() where run_id = %(run)s and state = 'processing'",
)
"""The leases of a dead worker run out. Moved rather than waited for, so that a slow machine kills nobody too early."""
ORGANIZATION, USER = UUID(int=1), UUID(int=2)
assert agno.agent.__name__  # imported before the forks


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One death, and what became of the run."""

    cls: str
    watermark: str
    point: str
    killed: bool = False
    run: str = ""
    claim: str = ""
    effects: int = 0
    requests: int = 0


class Words(BaseModel):
    text: str


class Done(BaseModel):
    number: int


def cells() -> list[Cell]:
    """Every cell that exists: a tool marked with its claim makes no statement of its own for the watermark."""
    return [
        Cell(cls=cls, watermark=watermark, point=point)
        for cls in CLASSES
        for watermark in WATERMARKS
        for point in POINTS
        if watermark == "at_transport" or "mark_effect_sent" not in point
    ]


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


# -- the worker --------------------------------------------------------------------------------------------------------


class DyingDatabase(Database):
    """Dies before or after a statement of this name, the first time."""

    def __init__(self, pool: Pool, point: str) -> None:
        super().__init__(pool)
        self._when, _, self._name = point.partition(" ")
        self._claimed = False
        self._claim_row = load_queries("calls")["claim_row"]
        self._names = {text: name for group in ("calls", "runs") for name, text in load_queries(group).items()}

    def _is_here(self, statement: str) -> bool:
        name = self._names.get(statement, "")
        if statement.startswith("with done as ("):
            name = "end_complete"
        elif statement.endswith(self._claim_row):
            name = "claim"
        self._claimed = self._claimed or name == "claim"
        if self._name == "the next append":
            return name in ("append", "finish") and self._claimed
        return name == self._name

    async def one(self, statement: Any, params: Any) -> Any:
        """Run it, or die."""
        here = self._is_here(statement)
        if here and self._when == "before":
            die()
        row = await super().one(statement, params)
        if here and self._when == "after":
            die()
        return row

    async def count(self, statement: Any, params: Any) -> int:
        """Run it, or die."""
        here = self._is_here(statement)
        if here and self._when == "before":
            die()
        touched = await super().count(statement, params)
        if here and self._when == "after":
            die()
        return touched


def app(cell: Cell, origin: str, *, first: bool) -> App:
    """One tool of the cell's class over HTTP, and a model that words everything anew whenever it is asked."""
    extra: dict[str, Any] = {"vendor_key_ttl_s": 3600} if cell.cls == "conditional" else {}

    @internal_tool(
        "act.do", "Act.", side_effects="write", risk="low", repeatable=False, idempotency=cell.cls, watermark=cell.watermark,
        timeout_s=30, **extra,
    )  # fmt: skip
    async def act(ctx: CallContext, args: Words) -> Done:
        kill = str(os.getpid()) if first and cell.point == "accepted by the provider" else "0"
        headers = {
            "X-Cell": _name(cell), "X-Class": cell.cls, "X-Kill": kill, "Idempotency-Key": ctx.idempotency_key or "",
        }  # fmt: skip
        client = GovernedClient(
            origin=origin, before_first_byte=ctx.before_first_byte, deadline=ctx.deadline, clock=ctx.clock
        )
        async with client:
            await client.post_bytes("/act", json.dumps({"text": args.text}).encode(), headers=headers)
        return Done(number=1)

    tools: list[Tool] = [act]
    script: list[Turn] = [Calls([Call("act.do", {"text": "hello"}, reword=("text",))]), Say("Done.")]
    return App(tools=tools, models={"scripted": lambda: ScriptedModel(script=script, reword=True)})


async def first_worker(cell: Cell, url: str, origin: str, run_id: UUID) -> None:
    """Leads until it is killed."""

    def dying(pool: Pool) -> Database:
        return DyingDatabase(pool, cell.point)

    async with open_platform(
        app(cell, origin, first=True), url, bus=RecordingBus(), max_connections=2, stores_on=dying
    ) as platform:
        await platform.leader.advance(ORGANIZATION, run_id)


async def next_worker(cell: Cell, url: str, origin: str, run_id: UUID) -> str:
    """Goes on until the run ends; what stands then, as JSON."""
    async with open_platform(app(cell, origin, first=False), url, bus=RecordingBus(), max_connections=2) as platform:
        for statement in TIME_PASSES:
            await platform.database.count(statement, {"run": run_id})
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            await platform.leader.advance(ORGANIZATION, run_id)
            tree = await platform.runs.tree(ORGANIZATION, run_id)
            if tree.run["finished_at"] is not None:
                break
            await asyncio.sleep(0.1)
        rows = await platform.database.all(
            "select state from agent.idempotency_keys where run_id = %(run)s", {"run": run_id}
        )
        states = ",".join(row["state"] for row in rows) or "none"
        audit = await platform.audit.verify(ORGANIZATION, run_id)
        assert audit.whole, audit.findings
        return json.dumps({"run": tree.run["state"], "claim": states})


async def start(cell: Cell, url: str, origin: str) -> str:
    """Starts the cell's run; its id."""
    async with open_platform(app(cell, origin, first=False), url, bus=RecordingBus(), max_connections=2) as platform:
        await platform.approval_store.put_member(ORGANIZATION, USER, Role.MEMBER)
        agent = AgentDefinition(name="tested", instructions="Act.", model="scripted", tools=("act.do",))
        principal = Principal(organization_id=ORGANIZATION, user_id=USER)
        started = await platform.runs.start(agent, "Go.", principal=principal, request_key=_name(cell))
        return str(started.run_id)


# -- the driver --------------------------------------------------------------------------------------------------------


def _name(cell: Cell) -> str:
    return f"{cell.cls}-{cell.watermark}-{cell.point}".replace(" ", "_")


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
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def one_cell(cell: Cell, url: str, origin: str, folder: Path) -> Cell:
    """One death and its recovery."""
    run_file, out = folder / f"{_name(cell)}.run", folder / f"{_name(cell)}.out"
    forked(lambda: start(cell, url, origin), run_file)
    run_id = UUID(run_file.read_text())
    died = forked(lambda: first_worker(cell, url, origin, run_id))
    forked(lambda: next_worker(cell, url, origin, run_id), out)
    stands = json.loads(out.read_text())
    return Cell(
        cls=cell.cls,
        watermark=cell.watermark,
        point=cell.point,
        killed=os.WIFSIGNALED(died) and os.WTERMSIG(died) == signal.SIGKILL,
        run=stands["run"],
        claim=stands["claim"],
        effects=EffectLedger(folder / f"{_name(cell)}.effects").count(),
        requests=EffectLedger(folder / f"{_name(cell)}.requests").count(),
    )


def main(arguments: Sequence[str]) -> None:
    """All cells, several at once."""
    url, folder = os.environ["CRASH_MATRIX_URL"], Path(arguments[0])
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
                    result = one_cell(cell, url, origin, folder)
                    (folder / f"{_name(cell)}.cell").write_text(json.dumps(asdict(result)))
                    os._exit(0)
                running[pid] = cell
            pid, _ = os.waitpid(-1, 0)
            running.pop(pid, None)
    finally:
        os.kill(provider, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
