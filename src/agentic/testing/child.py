"""Leading a run in a child process, for tests that kill it in the middle.

The child imports an app by its path and leads one run for one segment; a tool of the app calls ``die`` where the test wants the
process to end, as a power cut would.
"""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from uuid import UUID

from agentic.contract.errors import ProgramFault
from agentic.contract.events import Event

KILLED = -signal.SIGKILL
_TIMEOUT_S = 60


def die() -> None:
    """End this process at once: no handler runs, no ``finally``, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


def advance_in_child(
    app: str,
    database_url: str,
    organization_id: UUID,
    run_id: UUID,
    *,
    environment: Mapping[str, str] | None = None,
    lease_s: float = 2,
    claim_grace_s: float = 1,
) -> int:
    """Lead a run for one segment in a child process, and wait for it.

    Args:
        app: import path of an ``App`` or of a function that makes one, ``module:name``.
        environment: what the app's tools need to know.
        lease_s: length of the run's lease there, in seconds.

    Returns:
        The child's exit status: 0 when the segment ended, ``KILLED`` when it died.
    """
    arguments = [
        sys.executable,
        "-m",
        "agentic.testing.child",
        app,
        str(organization_id),
        str(run_id),
        str(lease_s),
        str(claim_grace_s),
    ]
    child = subprocess.run(
        arguments,
        env={**os.environ, **(environment or {}), "AGENTIC_CHILD_DATABASE_URL": database_url},
        timeout=_TIMEOUT_S,
        check=False,
    )
    return child.returncode


class _NoBus:
    async def send(self, events: Sequence[Event]) -> None:
        """The parent reads rows; nobody listens here."""


async def _main(app: str, organization_id: str, run_id: str, lease_s: str, claim_grace_s: str) -> None:
    from agentic.bootstrap import App, open_platform
    from agentic.runtime.agent.timings import Timings
    from agentic.services.tools.default_invoker import InvokerSettings

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
        timings=Timings(lease_s=lease, renew_s=lease / 4, fault_retry_s=0.05),
        invoker_settings=InvokerSettings(claim_grace_s=float(claim_grace_s)),
    ) as platform:
        await platform.leader.advance(UUID(organization_id), UUID(run_id))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
