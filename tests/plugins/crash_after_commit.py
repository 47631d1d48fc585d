"""Leads one run and dies between COMMIT 2 of its first call and the message that would carry the answer."""

import asyncio
import os
import sys
from typing import Any
from uuid import UUID

import crash_app
from agentic.bootstrap import open_platform
from agentic.runtime.agent.timings import Timings
from agentic.testing import RecordingBus, die


async def main(organization_id: UUID, run_id: UUID) -> None:
    """Until the kill."""
    timings = Timings(lease_s=20, renew_s=5)
    url = os.environ["AGENTIC_CHILD_DATABASE_URL"]
    async with open_platform(crash_app.make(), url, bus=RecordingBus(), timings=timings) as platform:
        invoke = platform.invoker.invoke

        async def invoke_and_die(*args: Any) -> Any:
            await invoke(*args)
            die()

        platform.invoker.invoke = invoke_and_die  # type: ignore[method-assign, assignment]
        await platform.leader.advance(organization_id, run_id)


def run() -> None:
    """The process."""
    asyncio.run(main(UUID(sys.argv[1]), UUID(sys.argv[2])))
