"""Keeps the embedded Postgres of the development services there: one that was killed is started again, and recovers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from agentic.local.postgres import EmbeddedPostgres, EmbeddedPostgresError

LOOK_S = 1.0
"""Between two looks; doubled for each start that fails, up to a minute."""
_LONGEST_S = 60.0


@contextlib.asynccontextmanager
async def kept(
    server: EmbeddedPostgres | None, *, say: Callable[[str], None], look_s: float = LOOK_S
) -> AsyncIterator[None]:
    """While the block runs, start the server again whenever it is gone.

    Args:
        server: used by nobody else; ``None`` where the database is not ours to start.
        say: told, in sentences, that it ended, and why it does not start.
        look_s: seconds between two looks.
    """
    if server is None:
        yield
        return
    stopping = asyncio.Event()
    keeper = asyncio.create_task(_keep(server, stopping, say, look_s), name="database")
    try:
        yield
    finally:
        stopping.set()  # not cancelled: a start goes on in its thread, and stop must come after it
        await keeper
        await asyncio.to_thread(server.stop)


async def _keep(server: EmbeddedPostgres, stopping: asyncio.Event, say: Callable[[str], None], look_s: float) -> None:
    wait_s = look_s
    while not await _within(stopping, wait_s):
        try:
            if not server.serves():
                say("the database ended; it is started again")
                await asyncio.to_thread(server.start)
        except EmbeddedPostgresError as failed:
            say(str(failed))
            wait_s = min(wait_s * 2, _LONGEST_S)
        else:
            wait_s = look_s


async def _within(event: asyncio.Event, wait_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await event.wait()
    return event.is_set()
