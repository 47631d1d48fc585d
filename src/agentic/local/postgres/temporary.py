"""A throw-away server, for tests and rehearsals."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentic.local.postgres.bootstrap import bootstrap_supabase
from agentic.local.postgres.server import EmbeddedPostgres

_FAST = {"fsync": "off", "full_page_writes": "off"}


@contextmanager
def temporary_postgres(*, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server with what Supabase provides, deleted with its data when the block ends. It does not survive a power cut.

    Args:
        settings: Server settings over the defaults.

    Yields:
        The URL of its database `postgres`, for the superuser.

    Raises:
        EmbeddedPostgresError: One of its kinds: no server can be had here.
    """
    parent = Path(tempfile.mkdtemp(prefix="agentic-postgres-"))
    if os.geteuid() == 0:  # the account that runs Postgres has to pass
        parent.chmod(0o711)
    server = EmbeddedPostgres(parent / "postgres", settings={**_FAST, **(settings or {})})
    try:
        url = server.start()
        bootstrap_supabase(url)
        yield url
    finally:
        server.destroy()
        shutil.rmtree(parent, ignore_errors=True)
