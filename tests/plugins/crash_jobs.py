"""A process that submits, takes in or settles a job of FullEnrich and dies at a point of it; its arguments are POINT WHAT ARGUMENTS.

``CRASH_VENDOR`` is where the stand-in is, ``AGENTIC_CHILD_DATABASE_URL`` the database.
"""

import asyncio
import base64
import json
import os
import sys
from functools import partial
from uuid import UUID

from agentic.bootstrap import App, open_platform
from agentic.local.crash_points import JobCrashPoint
from agentic.local.crash_points.dying_jobs import DyingJobDatabase
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.timings import Timings
from agentic.services.provider_jobs.fullenrich import FullEnrich, FullEnrichAccount
from agentic.testing import RecordingBus
from jobs_stage import KEY, SCRIPT
from money import FREE


def make() -> App:
    """The app of the stage, as another process has it."""
    account = FullEnrichAccount(
        key=KEY, callback_origin="https://api.shop.example", origin=os.environ["CRASH_VENDOR"], window_s=0.001
    )
    return App(
        models={"scripted": lambda: ScriptedModel(script=SCRIPT, usage=FREE)},
        providers=[FullEnrich(account)],
    )


async def main(point: JobCrashPoint, what: str, *arguments: str) -> None:
    """Until the kill."""
    async with open_platform(
        make(),
        os.environ["AGENTIC_CHILD_DATABASE_URL"],
        bus=RecordingBus(),
        timings=Timings(lease_s=20, renew_s=5),
        stores_on=partial(DyingJobDatabase, point=point),
    ) as platform:
        match what:
            case "advance":
                await platform.leader.advance(UUID(arguments[0]), UUID(arguments[1]))
            case "receive":
                headers = {name.lower(): value for name, value in json.loads(arguments[2]).items()}
                await platform.webhooks.receive("fullenrich", arguments[0], base64.b64decode(arguments[1]), headers)
            case "settle":
                await platform.settling.settle(UUID(arguments[0]), UUID(arguments[1]))


def run() -> None:
    """The process."""
    asyncio.run(main(JobCrashPoint(sys.argv[1]), *sys.argv[2:]))
