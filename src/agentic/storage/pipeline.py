"""Several statements as one transaction and one round trip, with nothing said behind the Sync that ends them (ADR 0044)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncPipeline
from psycopg.abc import PQGen

from agentic.storage.pool import Connection


class SyncedPipeline(AsyncPipeline):
    """A pipeline that ends with its Sync.

    psycopg asks for a Flush behind it. A transaction pooler has let go of the server by then, takes another one for the Flush, and keeps
    it for a client that waits for nothing: as many such clients as there are servers, and everybody else waits for good.
    """

    def _exit_gen(self) -> PQGen[None]:
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            # what waits there yet never left, and neither did the Sync behind it
            yield from self._fetch_gen(flush=bool(self.command_queue))


@asynccontextmanager
async def pipelined(connection: Connection) -> AsyncIterator[None]:
    """Run the block's statements as one transaction and one round trip; their results are there when it has ended.

    Args:
        connection: in autocommit mode, and in no pipeline.
    """
    connection._pipeline = SyncedPipeline(connection)  # noqa: SLF001 - it would make its own, and there is no public way to say which
    async with connection.pipeline():
        yield
