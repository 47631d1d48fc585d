"""How long the demo bears a model provider that fails: the tries of a run it follows, the next one's time, and the end of patience."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from agentic.contract.errors import AgenticError
from agentic.local.demo.summary import provider_error

GIVE_UP_S = 60.0
"""A run itself is more patient; here somebody sits and waits."""


class ProviderDown(AgenticError):
    """The model provider kept failing; the run was cancelled."""


class Patience:
    """Watches one run.

    Args:
        monotonic: seconds, for a test that does not wait.
        now: the time of day that a run's due time is compared with.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._monotonic = monotonic
        self._now = now
        self._failing_since: float | None = None
        self._told_of: str | None = None

    def look(self, tree: Mapping[str, Any]) -> str | None:
        """The sentence about a try that failed and the one to come, once for each; else ``None``.

        Args:
            tree: the run as ``GET /v1/runs/{id}`` gives it.
        """
        if provider_error(tree) is None:
            self._failing_since = None
            return None
        if self._failing_since is None:
            self._failing_since = self._monotonic()
        due = tree["run"].get("due_at")
        if due is None or due == self._told_of:
            return None
        self._told_of = due
        wait_s = (datetime.fromisoformat(due) - self._now()).total_seconds()
        return f"The model provider failed; it is asked again in {max(wait_s, 0):.0f} s." if wait_s > 0 else None

    def over(self) -> bool:
        """Whether the provider has failed for too long."""
        return self._failing_since is not None and self._monotonic() - self._failing_since >= GIVE_UP_S

    def verdict(self, tree: Mapping[str, Any], model: str) -> ProviderDown:
        """The closing sentence of a run that was cancelled for it."""
        cause = (provider_error(tree) or "no reason").rstrip(".")
        return ProviderDown(
            f"the provider of the model {model} has failed for a minute ({cause}), so the run was cancelled; "
            "check the network, the provider's address and its status, then start again"
        )
