"""An engine as a process of its own, for tests that kill it: `engine_process.py DSN PORT LEASE_S`."""

from __future__ import annotations

import asyncio
import sys

from agentic.local.engine import FunctionEngine


async def main() -> None:
    dsn, port, lease_s = sys.argv[1:]
    engine = FunctionEngine(dsn=dsn, port=int(port), lease_s=float(lease_s), poll_s=0.05, backoff=lambda failures: 0.01)
    await engine.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
