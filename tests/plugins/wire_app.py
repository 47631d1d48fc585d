"""The app of workers that are stopped or killed while a model over the wire answers them; ``WIRE_URL`` names the provider.

``wire_app:run``, told ``ORGANIZATION RUN``, leads one run for one segment, stops in order on SIGTERM as a worker does, and prints the state.
"""

import asyncio
import os
import signal
import sys
from uuid import UUID

import crash_app
from agentic.bootstrap import App, open_platform
from agentic.runtime.agent.timings import Timings
from agentic.services.connections.fixed import FixedConnections
from agentic.services.tools.default_invoker import InvokerSettings
from agentic.testing import RecordingBus
from wire_stage import chat


def make() -> App:
    """The crash tests' tools, and a model that is asked over HTTP."""
    return App(
        tools=crash_app.TOOLS,
        models={"scripted": lambda: chat(os.environ["WIRE_URL"])},
        connections=FixedConnections(),
    )


async def main(organization_id: UUID, run_id: UUID) -> None:
    """One segment."""
    async with open_platform(
        make(),
        os.environ["AGENTIC_CHILD_DATABASE_URL"],
        bus=RecordingBus(),
        timings=Timings(lease_s=float(os.environ["WIRE_LEASE_S"]), renew_s=0.25, fault_retry_s=0.05),
        invoker_settings=InvokerSettings(claim_grace_s=0.2),
    ) as platform:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, platform.leader.draining.ask)
        print((await platform.leader.advance(organization_id, run_id)).state, flush=True)


def run() -> None:
    """The process."""
    asyncio.run(main(UUID(sys.argv[1]), UUID(sys.argv[2])))
