"""Where the processes come from that die in these tests."""

from collections.abc import Iterator

import pytest

from warm_processes import Warm


@pytest.fixture(scope="session")
def dying() -> Iterator[Warm]:
    """Forks them from one that has imported whatever leads a workflow."""
    processes = Warm("agentic.bootstrap.opening", "workflow_worker")
    yield processes
    processes.close()
