"""Engines that die by SIGKILL around their commits, one after another: `engine_lives.py DSN PORT LIVES before|after`.

Life number n is killed at its (n mod 7 + 1)-th commit that changed something, just before it or just after it. The one
after the last of `LIVES` lives on. Each death is a line on standard output. The lives are forks of one process, because
importing the engine anew would take longer than what it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

from agentic.local.engine import FunctionEngine
from agentic.local.engine.store import Store, Transaction

CYCLE = 7
LEASE_S = 0.4


def doomed(store: Store, *, commits: int, before: bool) -> None:
    """Let the process die at the store's so many-th changing commit."""
    honest, seen = store.transaction, 0

    @contextlib.asynccontextmanager
    async def transaction() -> AsyncIterator[Transaction]:
        nonlocal seen
        dies = False
        async with honest() as opened:
            yield opened
            cursor = await opened.connection.execute("select pg_current_xact_id_if_assigned() as id")
            row = await cursor.fetchone()
            if row is not None and row["id"] is not None:
                seen += 1
                dies = seen == commits
            if dies and before:
                os.kill(os.getpid(), signal.SIGKILL)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    store.transaction = transaction  # type: ignore[method-assign]


async def live(dsn: str, port: int, *, commits: int | None, before: bool) -> None:
    engine = FunctionEngine(
        dsn=dsn, port=port, lease_s=LEASE_S, poll_s=0.05, backoff=lambda failures: 0.01, reconnect=lambda tries: 0.05
    )
    if commits is not None:
        doomed(engine._store, commits=commits, before=before)
    await engine.start()
    await asyncio.Event().wait()


def main() -> None:
    dsn, port, lives, where = sys.argv[1:]
    for life in range(int(lives)):
        child = os.fork()
        if child == 0:
            asyncio.run(live(dsn, int(port), commits=life % CYCLE + 1, before=where == "before"))
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"life {life} ended by itself with {status}"
        assert os.WTERMSIG(status) == signal.SIGKILL, f"life {life} was ended by {status}"
        print(f"died {life}", flush=True)
    asyncio.run(live(dsn, int(port), commits=None, before=False))


main()
