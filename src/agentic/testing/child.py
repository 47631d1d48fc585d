"""Leading a run in a child process, for tests that kill it in the middle.

The child imports an app by its path and leads one run for one segment; a tool of the app calls ``die`` where the test wants the
process to end, as a power cut would.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from uuid import UUID

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
        "agentic.testing.child_process",
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
