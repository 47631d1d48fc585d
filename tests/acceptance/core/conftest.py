"""Where the processes come from that die in these tests."""

from collections.abc import Iterator

import pytest

from warm_processes import Warm


@pytest.fixture(scope="session")
def dying() -> Iterator[Warm]:
    """Forks them from one that has imported whatever leads a run."""
    processes = Warm(
        *("agentic.bootstrap.opening", "agentic.runtime.agent.agno.runtime", "agentic.testing.child_process"),
        *("crash_jobs", "crash_app", "crash_after_commit", "mcp_crash_app", "agentic.services.mcp.http"),
    )
    yield processes
    processes.close()
