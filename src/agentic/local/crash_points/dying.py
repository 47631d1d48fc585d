"""Stores, tools, models and buses that kill their process at one point. They stand around the real ones and change nothing else."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.events import Event
from agentic.local.crash_points.arming import Armed
from agentic.local.crash_points.points import CrashPoint
from agentic.services.tools.context import CallContext
from agentic.services.tools.declarations import Tool
from agentic.services.tools.ports import ToolHandler
from agentic.storage.database import Database, Params
from agentic.storage.pool import Pool
from agentic.storage.queries import load_queries

When = Literal["before", "inside", "after"]
Commit = Literal[
    "answer", "result", "next", "pause", "park", "resume", "preflight", "claim", "watermark", "complete", "finish"
]

_AT: Mapping[CrashPoint, tuple[When, Commit]] = {
    CrashPoint.BEFORE_ANSWER_APPEND: ("before", "answer"),
    CrashPoint.AFTER_ANSWER_APPEND: ("after", "answer"),
    CrashPoint.BEFORE_RESULT_APPEND: ("before", "result"),
    CrashPoint.AFTER_RESULT_APPEND: ("after", "result"),
    CrashPoint.BEFORE_PAUSE: ("before", "pause"),
    CrashPoint.AFTER_PAUSE: ("after", "pause"),
    CrashPoint.BEFORE_PARK: ("before", "park"),
    CrashPoint.INSIDE_PARK: ("inside", "park"),
    CrashPoint.AFTER_PARK: ("after", "park"),
    CrashPoint.BEFORE_RESUME: ("before", "resume"),
    CrashPoint.AFTER_RESUME: ("after", "resume"),
    CrashPoint.BEFORE_PREFLIGHT: ("before", "preflight"),
    CrashPoint.AFTER_PREFLIGHT: ("after", "preflight"),
    CrashPoint.BEFORE_CLAIM: ("before", "claim"),
    CrashPoint.AFTER_CLAIM: ("after", "claim"),
    CrashPoint.BEFORE_WATERMARK: ("before", "watermark"),
    CrashPoint.AFTER_WATERMARK: ("after", "watermark"),
    CrashPoint.BEFORE_COMPLETE: ("before", "complete"),
    CrashPoint.AFTER_COMPLETE: ("after", "complete"),
    CrashPoint.BEFORE_NEXT_APPEND: ("before", "next"),
    CrashPoint.AFTER_NEXT_APPEND: ("after", "next"),
    CrashPoint.BEFORE_FINISH: ("before", "finish"),
    CrashPoint.AFTER_FINISH: ("after", "finish"),
}


def die() -> None:
    """End this process at once: no handler runs, no ``finally``, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # the signal is on its way


class DyingDatabase(Database):
    """Dies around the commit that a point names.

    Args:
        pool: what the real one reaches Postgres through.
        point: where; one that is no commit's is nobody's here.
        armed: whether now.
    """

    def __init__(self, pool: Pool, point: CrashPoint, armed: Armed) -> None:
        super().__init__(pool)
        self._at = _AT.get(point)
        self._armed = armed
        names = (("runs", ("append", "park", "finish", "take")), ("calls", ("preflight", "mark_effect_sent")))
        self._names = {load_queries(group)[name]: name for group, listed in names for name in listed}

    async def all(self, statement: LiteralString, params: Params) -> list[Any]:
        """Run it, or die."""
        commit = self._commit(statement, params)
        self._maybe("before", commit, params)
        rows = await super().all(statement, params)
        if rows:
            self._maybe("after", commit, params)
        return rows

    async def count(self, statement: LiteralString, params: Params) -> int:
        """Run it, or die."""
        commit = self._commit(statement, params)
        self._maybe("before", commit, params)
        touched = await super().count(statement, params)
        self._maybe("after", commit, params)
        return touched

    async def atomic(self, statements: Sequence[tuple[LiteralString, Params]]) -> list[Any]:
        """Run them, or die: before, after, or with all but the last of them sent."""
        statement, params = statements[-1]
        commit = self._commit(statement, params)
        self._maybe("before", commit, params)
        if self._at == ("inside", commit) and self._armed(_run(params)):
            async with self._connection() as connection, connection.transaction():
                for earlier, its in statements[:-1]:
                    await connection.execute(earlier, its)
                die()
        rows = await super().atomic(statements)
        self._maybe("after", commit, params)
        return rows

    def _maybe(self, when: When, commit: Commit | None, params: Params) -> None:
        if commit is not None and self._at == (when, commit) and self._armed(_run(params)):
            die()

    def _commit(self, statement: str, params: Params) -> Commit | None:
        match self._names.get(statement):
            case "append":
                return _append(params)
            case "take":
                return "resume"
            case "mark_effect_sent":
                return "watermark"
            case "park" | "finish" | "preflight" as name:
                return name
        if params.keys() >= {"request_hash", "lease_s", "watermark"}:
            return "claim"
        return "complete" if params.get("effect_kind") == "completed" else None


def _append(params: Params) -> Commit | None:
    if params["proposals"] != "[]":
        return "pause"
    if params["answered"]:
        return "next"
    if "assistant" in params["message_roles"]:
        return "answer"
    return "result" if "tool" in params["message_roles"] else None


def _run(params: Params) -> UUID | None:
    return params.get("run_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class _DyingHandler:
    inner: ToolHandler
    point: CrashPoint
    armed: Armed

    async def execute(self, ctx: CallContext, args: BaseModel) -> Any:
        """Do what the tool does, or die before or after it."""
        if self.point is CrashPoint.BEFORE_EFFECT and self.armed(ctx.run_id):
            die()
        answer = await self.inner.execute(ctx, args)
        if self.point is CrashPoint.AFTER_EFFECT and self.armed(ctx.run_id):
            die()
        return answer


def dying_tool(tool: Tool, point: CrashPoint, armed: Armed) -> Tool:
    """The tool, whose handler dies where the point says so."""
    return replace(tool, handler=_DyingHandler(inner=tool.handler, point=point, armed=armed))


def dying_model(model: Any, armed: Armed) -> Any:
    """The model, whose stream is cut by the death of its process after the first piece. Its class changes, not its type of provider."""

    class Dying(type(model)):  # type: ignore[misc]
        async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async for piece in super().ainvoke_stream(*args, **kwargs):
                yield piece
                if armed(None):
                    die()

    Dying.__name__ = type(model).__name__
    Dying.__module__ = type(model).__module__
    model.__class__ = Dying
    return model


class DyingBus:
    """A bus that takes its process with it: what was committed is committed, and nobody is told."""

    async def send(self, events: Sequence[Event]) -> None:
        """Die."""
        die()
