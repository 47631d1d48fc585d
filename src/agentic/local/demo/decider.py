"""``python -m agentic.local.demo.decider APPROVAL``: approves one call and is killed between the commit and the nudge.

Its surroundings come from the environment: ``DATABASE_URL`` and the variables below.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from uuid import UUID

from agentic.bootstrap import App, open_platform
from agentic.local.crash_points.dying import DyingBus
from agentic.local.home import DATABASE_URL
from agentic.services.approvals.models import Verdict

ORGANIZATION, PERSON = "AGENTIC_DEMO_ORGANIZATION", "AGENTIC_DEMO_PERSON"


async def decide_and_die(approval_id: str, *, database_url: str, organization_id: UUID, user_id: UUID) -> int:
    """Have a process of its own decide; how it ended, negative for a signal."""
    variables: Mapping[str, str] = {
        DATABASE_URL: database_url,
        ORGANIZATION: str(organization_id),
        PERSON: str(user_id),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agentic.local.demo.decider", approval_id, env={**os.environ, **variables}
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _decide(approval_id: UUID) -> None:
    async with open_platform(App(), os.environ[DATABASE_URL], bus=DyingBus(), max_connections=1) as platform:
        await platform.approvals.decide(
            UUID(os.environ[ORGANIZATION]),
            approval_id,
            user_id=UUID(os.environ[PERSON]),
            verdict=Verdict.APPROVED,
        )


if __name__ == "__main__":
    asyncio.run(_decide(UUID(sys.argv[1])))
