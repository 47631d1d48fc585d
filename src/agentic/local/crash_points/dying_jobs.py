"""A database that kills its process around one statement of a provider's job, and changes nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, LiteralString

from agentic.local.crash_points.dying import die
from agentic.local.crash_points.job_points import JobCrashPoint
from agentic.storage.database import Database, Params
from agentic.storage.pool import Pool
from agentic.storage.queries import load_queries

When = Literal["before", "inside", "after"]

_AT: Mapping[JobCrashPoint, tuple[When, str, str]] = {
    JobCrashPoint.BEFORE_RESERVE: ("before", "jobs", "reserve"),
    JobCrashPoint.AFTER_RESERVE: ("after", "jobs", "reserve"),
    JobCrashPoint.BEFORE_SUBMIT: ("after", "calls", "mark_effect_sent"),
    JobCrashPoint.BEFORE_BIND: ("before", "jobs", "bind"),
    JobCrashPoint.AFTER_BIND: ("after", "jobs", "bind"),
    JobCrashPoint.BEFORE_INTAKE: ("before", "jobs", "deliver"),
    JobCrashPoint.INSIDE_INTAKE: ("inside", "jobs", "deliver"),
    JobCrashPoint.AFTER_INTAKE: ("after", "jobs", "deliver"),
    JobCrashPoint.BEFORE_SETTLE: ("before", "jobs", "settle"),
    JobCrashPoint.INSIDE_SETTLE: ("inside", "jobs", "settle"),
    JobCrashPoint.AFTER_SETTLE: ("after", "jobs", "settle"),
}


class DyingJobDatabase(Database):
    """Dies at a point.

    Args:
        pool: what the real one reaches Postgres through.
        point: where; one that is no statement's is nobody's here.
    """

    def __init__(self, pool: Pool, point: JobCrashPoint) -> None:
        super().__init__(pool)
        at = _AT.get(point)
        self._when: When | None = None if at is None else at[0]
        self._statement = None if at is None else load_queries(at[1])[at[2]]

    async def all(self, statement: LiteralString, params: Params) -> list[Any]:
        """Run it, or die."""
        self._maybe("before", statement)
        if self._is("inside", statement):
            async with self._connection() as connection, connection.transaction():
                await connection.execute(statement, params)
                die()
        rows = await super().all(statement, params)
        self._maybe("after", statement)
        return rows

    async def count(self, statement: LiteralString, params: Params) -> int:
        """Run it, or die."""
        self._maybe("before", statement)
        touched = await super().count(statement, params)
        self._maybe("after", statement)
        return touched

    async def atomic(self, statements: Sequence[tuple[LiteralString, Params]]) -> list[Any]:
        """Run them, or die: before, after, or with all but the last of them sent."""
        last = statements[-1][0]
        self._maybe("before", last)
        if self._is("inside", last):
            async with self._connection() as connection, connection.transaction():
                for earlier, its in statements[:-1]:
                    await connection.execute(earlier, its)
                die()
        rows = await super().atomic(statements)
        self._maybe("after", last)
        return rows

    def _is(self, when: When, statement: str) -> bool:
        return (self._when, self._statement) == (when, statement)

    def _maybe(self, when: When, statement: str) -> None:
        if self._is(when, statement):
            die()
