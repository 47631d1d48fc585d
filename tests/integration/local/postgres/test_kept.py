"""The database of the development services is there again after it was killed, and what keeps it away is said."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg

from agentic.local.dev.database import kept
from agentic.local.postgres import EmbeddedPostgres

_PATIENCE_S = 40


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - another process answers
            await asyncio.sleep(0.02)


class _Counting(EmbeddedPostgres):
    """Knows how often it was started to the end: whoever kills it earlier has another start fail, which is said as well."""

    starts = 0

    def start(self) -> str:
        url = super().start()
        self.starts += 1
        return url


async def test_a_server_that_is_killed_is_started_again_each_time_and_stops_with_the_last_user(root: Path) -> None:
    user, said = EmbeddedPostgres(root), list[str]()
    url = await asyncio.to_thread(user.start)
    server = _Counting(root)
    async with kept(server, say=said.append, look_s=0.02):
        for time in (1, 2):
            pid = int((root / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
            os.kill(pid, signal.SIGKILL)
            await _until(lambda: server.starts == time)  # noqa: B023 - awaited within the turn
            psycopg.connect(url).close()
    assert said == ["the database ended; it is started again"] * 2
    assert await asyncio.to_thread(user.stop)
    assert not user.serves()


async def test_a_folder_that_was_removed_is_said_and_no_empty_database_takes_its_place(root: Path) -> None:
    user, said = EmbeddedPostgres(root), list[str]()
    await asyncio.to_thread(user.start)
    await asyncio.to_thread(user.stop)
    shutil.rmtree(root)
    async with kept(EmbeddedPostgres(root), say=said.append, look_s=0.02):
        await _until(lambda: bool(said))
    assert "was removed" in said[0]
    assert not root.exists()  # noqa: ASYNC240 - a look at a local folder
