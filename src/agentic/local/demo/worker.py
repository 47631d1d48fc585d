"""``python -m agentic.local.demo.worker``: the demo's worker. It is any worker, but may be told to die at a point."""

import sys
from typing import TYPE_CHECKING

from agentic.local.worker.__main__ import main

if TYPE_CHECKING:
    from agentic.storage.database import Database
    from agentic.storage.pool import Pool


def stores_on(pool: "Pool") -> "Database":
    """What its stores reach the database through."""
    from agentic.local.crash_points import (
        ArmedByFile,
    )  # late: a worker that stands by imports what it needs in its own order
    from agentic.local.crash_points.dying import DyingDatabase
    from agentic.local.demo.settings import DemoSettings
    from agentic.storage.database import Database

    crash = DemoSettings.from_environment().crash
    return Database(pool) if crash is None else DyingDatabase(pool, crash.point, ArmedByFile(crash.armed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], stores_on=stores_on))
