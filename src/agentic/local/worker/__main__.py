"""``python -m agentic.local.worker module:attribute``: one worker, until SIGTERM.

Its surroundings come from the environment: ``DATABASE_URL``, the SDK's ``INNGEST_*``, ``AGENTIC_WORKER_SETTINGS``. The first line
on standard output is JSON: ``{"ready": URL}``, or ``{"error": SENTENCE}`` and exit 1. The log goes to standard error.
"""

import asyncio
import json
import logging
import sys

from agentic.contract.errors import AgenticError
from agentic.local.worker.parent import end_with_parent
from agentic.local.worker.serve import serve
from agentic.local.worker.settings import WorkerSettings


def main(arguments: list[str]) -> int:
    """Run one worker; the exit status of the process."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m agentic.local.worker module:attribute\n")
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = WorkerSettings.from_environment()
        if settings.ends_with_parent:
            end_with_parent()
        asyncio.run(serve(arguments[0], settings, ready=lambda url: _say({"ready": url})))
    except AgenticError as error:
        _say({"error": str(error)})
        return 1
    return 0


def _say(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
