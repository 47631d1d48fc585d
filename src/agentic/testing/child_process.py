"""The child process of ``advance_in_child``: imports an app by its path and leads one run for one segment."""

import asyncio
import importlib
import os
import sys
from collections.abc import Sequence
from uuid import UUID

from agentic.bootstrap import App, open_platform
from agentic.contract.errors import ProgramFault
from agentic.contract.events import Event
from agentic.runtime.agent.timings import Timings
from agentic.services.tools.default_invoker import InvokerSettings


class _NoBus:
    async def send(self, events: Sequence[Event]) -> None:
        """The parent reads rows; nobody listens here."""


async def _lead(app: str, organization_id: str, run_id: str, lease_s: str, claim_grace_s: str) -> None:
    module, _, name = app.partition(":")
    found = getattr(importlib.import_module(module), name)
    made = found if isinstance(found, App) else found()
    if not isinstance(made, App):
        raise ProgramFault(f"{app} is neither an App nor makes one")
    lease = float(lease_s)
    async with open_platform(
        made,
        os.environ["AGENTIC_CHILD_DATABASE_URL"],
        bus=_NoBus(),
        supabase={},
        timings=Timings(lease_s=lease, renew_s=lease / 4, fault_retry_s=0.05),
        invoker_settings=InvokerSettings(claim_grace_s=float(claim_grace_s)),
    ) as platform:
        await platform.leader.advance(UUID(organization_id), UUID(run_id))


def main() -> None:
    """The process."""
    asyncio.run(_lead(*sys.argv[1:]))


if __name__ == "__main__":
    main()
