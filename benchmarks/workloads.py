"""The calls that are measured, each as a step that one worker repeats on a run of its own."""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import orjson

from agentic.contract.errors import ProgramFault
from agentic.services.tools.calls import ToolCall, ToolInvocation
from benchmarks.stage import Stage

Step = Callable[[], Awaitable[None]]
"""One measured call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """One kind of call.

    Attributes:
        prepare: makes the step of one worker; what it does itself is not measured.
    """

    name: str
    prepare: Callable[[Stage], Awaitable[Step]]


async def _bare_commit(stage: Stage) -> Step:
    """The ceiling: one row inserted and committed, through the same client, pool and connection settings."""
    body = "x" * 300

    async def step() -> None:
        row = await stage.platform.database.one(
            "insert into public.bare_commits (body) values (%(body)s) returning id", {"body": body}
        )
        if row is None:
            raise ProgramFault("the bare insert gave no row")

    return step


async def _read(stage: Stage) -> Step:
    return other_words(stage, await stage.lead(), "bench.find")


async def _allowed_write(stage: Stage) -> Step:
    return other_words(stage, await stage.lead(), "bench.save")


async def _metered_read(stage: Stage) -> Step:
    return other_words(stage, await stage.lead(), "bench.look_up")


async def _metered_write(stage: Stage) -> Step:
    return other_words(stage, await stage.lead(), "bench.buy")


async def _waiting_write(stage: Stage) -> Step:
    return other_words(stage, await stage.lead(), "bench.save_slowly")


async def _replay(stage: Stage) -> Step:
    inv = await stage.lead()
    call = ToolCall(tool="bench.save", arguments_text='{"text": "the same note"}')
    first = await stage.platform.invoker.invoke(call, inv)
    if first.meta.replayed:
        raise ProgramFault("the first call of a run was answered from the journal")

    async def step() -> None:
        answer = await stage.platform.invoker.invoke(call, inv)
        inv.trail.take()
        if not answer.meta.replayed:
            raise ProgramFault("the same call ran again")

    return step


def other_words(stage: Stage, inv: ToolInvocation, tool: str) -> Step:
    """A step whose arguments differ every time, so that none is a replay."""
    numbers = itertools.count()
    mark = uuid4().hex[:8]

    async def step() -> None:
        arguments = orjson.dumps({"text": f"note {next(numbers)} of {mark}"}).decode()
        answer = await stage.platform.invoker.invoke(ToolCall(tool=tool, arguments_text=arguments), inv)
        inv.trail.take()  # in a run the next checkpoint writes it; here it must not grow
        if not answer.ok or answer.meta.replayed:
            raise ProgramFault(f"{tool} was to run and answered {answer.error or 'from the journal'}")

    return step


BARE: Final = Workload(name="bare_commit", prepare=_bare_commit)
READ: Final = Workload(name="read", prepare=_read)
ALLOWED_WRITE: Final = Workload(name="allowed_write", prepare=_allowed_write)
METERED_READ: Final = Workload(name="metered_read", prepare=_metered_read)
METERED_WRITE: Final = Workload(name="metered_write", prepare=_metered_write)
REPLAY: Final = Workload(name="replay", prepare=_replay)
WAITING_WRITE: Final = Workload(name="waiting_write", prepare=_waiting_write)
ALL: Final = (BARE, READ, METERED_READ, ALLOWED_WRITE, METERED_WRITE, REPLAY, WAITING_WRITE)
UNMETERED: Final = {METERED_READ.name: READ.name, METERED_WRITE.name: ALLOWED_WRITE.name}
"""What a metered call is held against."""
