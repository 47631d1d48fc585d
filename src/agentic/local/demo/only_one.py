"""One demo at a time in a database: a second one's worker would lead the first one's run, with another mailbox."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentic.contract.errors import AgenticError
from agentic.local.program import command
from agentic.storage.connection import connect

_HOLD = "select pg_try_advisory_lock(hashtextextended('agentic.demo', 0)) as held"


class AnotherDemoRuns(AgenticError):
    """Somebody else holds the lock."""


@asynccontextmanager
async def only_demo(database_url: str) -> AsyncIterator[None]:
    """Hold the database for this demo until the block ends. The lock dies with its connection, so no kill leaves it behind.

    Raises:
        AnotherDemoRuns: a demo is running there.
    """
    async with await connect(database_url) as connection:
        row = await (await connection.execute(_HOLD)).fetchone()
        if row is None or not row["held"]:
            raise AnotherDemoRuns(
                "another demo is running in this database; wait until it has ended, "
                f"or give this one a folder of its own: {command()} --folder OTHER demo"
            )
        yield
