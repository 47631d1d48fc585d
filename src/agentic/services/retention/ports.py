"""What retention needs: the rows, and the place of bytes that stand outside them."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.services.retention.models import OutlivedTree, Removed, RetentionPeriods


class RetentionStore(Protocol):
    """Removes rows whose time is over. Each method is one transaction, bounded, and safe to run twice at once."""

    async def outlived_trees(self, *, days: int, with_bodies_elsewhere: bool, limit: int) -> Sequence[OutlivedTree]:
        """Trees of runs whose time is over, oldest first.

        Args:
            with_bodies_elsewhere: also those with artifacts whose bytes stand in an object store.
        """
        ...

    async def forget_tree(self, tree: OutlivedTree, *, days: int) -> int:
        """Delete a tree's runs and everything below them, if its time is still over; how many runs."""
        ...

    async def drop_span_partition(self, *, days: int) -> str | None:
        """Drop the oldest partition of spans whose time is over and which has none of an open run; its name.

        Raises:
            StorageUnavailable: statements of others held it for too long.
        """
        ...

    async def forget_spans(self, *, days: int, limit: int) -> int:
        """Delete spans that stand in no partition of a month; how many."""
        ...

    async def forget_events(self, *, days: int, limit: int) -> int:
        """Delete events of ended runs; how many."""
        ...

    async def forget_outbox(self, *, days: int, limit: int) -> int:
        """Delete events that were sent; how many."""
        ...

    async def forget_deliveries(self, *, days: int, limit: int) -> int:
        """Delete claims on deliveries of no run, and counts of those that changed nothing; how many rows."""
        ...

    async def count(self, periods: RetentionPeriods, *, with_bodies_elsewhere: bool) -> Removed:
        """What would go now. Changes nothing."""
        ...


class BodiesElsewhere(Protocol):
    """An object store, as far as retention uses it."""

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        """Remove the bytes of every artifact of a run. Nothing to remove is no fault.

        Raises:
            RetryLater: some may remain; ask again.
        """
        ...
