"""``python -m agentic.local.worker module:attribute``: one worker, until SIGTERM.

Its surroundings come from the environment: ``DATABASE_URL``, the SDK's ``INNGEST_*``, ``AGENTIC_WORKER_SETTINGS``; with
``--standby`` in front they come on standard input instead. The first line on standard output is JSON: ``{"ready": URL}``, or
``{"error": SENTENCE}`` and exit 1. The log goes to standard error.
"""

import asyncio
import json
import logging
import sys
from typing import TYPE_CHECKING

from agentic.contract.errors import AgenticError
from agentic.local.worker.parent import end_with_parent
from agentic.local.worker.settings import WorkerSettings
from agentic.local.worker.standby import FLAG, stand_by

if TYPE_CHECKING:
    from agentic.local.worker.serve import StoresOn


def main(arguments: list[str], *, stores_on: "StoresOn | None" = None) -> int:
    """Run one worker; the exit status of the process.

    Args:
        stores_on: what its stores reach the database through, for a worker that is to die at a point; ``None`` for the real thing.
    """
    standby, paths = arguments[:1] == [FLAG], [argument for argument in arguments if argument != FLAG]
    if len(paths) != 1:
        sys.stderr.write(f"usage: python -m agentic.local.worker [{FLAG}] module:attribute\n")
        return 2
    try:
        if standby and not stand_by(paths[0]):
            return 0
        _work(paths[0], stores_on)
    except AgenticError as error:
        _say({"error": str(error)})
        return 1
    return 0


def _work(path: str, stores_on: "StoresOn | None") -> None:
    from agentic.local.worker.serve import serve  # after the usage message: it takes a second

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    settings = WorkerSettings.from_environment()
    if settings.ends_with_parent:
        end_with_parent()
    asyncio.run(serve(path, settings, ready=lambda url: _say({"ready": url}), stores_on=stores_on))


def _say(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
