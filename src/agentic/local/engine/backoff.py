"""How long to wait before an app is called again, after it failed and after it could not be reached."""

from __future__ import annotations

import random
from collections.abc import Callable

Backoff = Callable[[int], float]
"""From the number of failures so far (1 or more) to seconds."""


def retry_backoff(failures: int) -> float:
    """Seconds before the next attempt: 1 s doubling to 5 minutes, with up to a quarter of jitter on top."""
    seconds: float = min(2.0 ** (min(failures, 20) - 1), 300.0)
    return seconds * random.uniform(1.0, 1.25)  # noqa: S311 - spreads load, guards nothing


def reconnect_backoff(failures: int) -> float:
    """Seconds before an app that refused the connection is tried again: 0.2 s doubling to 2 s.

    Short, because on one machine the usual reason is a worker that is being replaced.
    """
    return min(0.2 * 2.0 ** (min(failures, 20) - 1), 2.0)
