"""Removes what has been kept long enough, a bounded batch at a time (ADR 0031). Safe at any time, twice at once too.

A process that dies in the middle has removed some batches whole and left the others; the next sweep goes on. Bytes that stand in an
object store go before the rows that name them, so that a death in between leaves rows, by which they are found again.
"""

import logging
from collections.abc import Awaitable, Callable

from agentic.contract.errors import RetryLater
from agentic.services.retention.models import OutlivedTree, Removed, RetentionPeriods
from agentic.services.retention.ports import BodiesElsewhere, RetentionStore

_log = logging.getLogger(__name__)
TREES = 100
"""Trees of runs a batch, each removed by a transaction of its own."""
ROWS = 5000
"""Rows a batch of everything else."""
BATCHES = 200
"""Batches of one kind in one sweep; what is left goes with the next."""


class Retention:
    """Removes what is over.

    Args:
        store: the rows.
        bodies: the object store of artifacts; ``None`` when the deployment has none. Runs with artifacts in one are left alone then.
        periods: how long things are kept.
    """

    def __init__(
        self,
        store: RetentionStore,
        *,
        bodies: BodiesElsewhere | None = None,
        periods: RetentionPeriods | None = None,
        rows: int = ROWS,
        batches: int = BATCHES,
    ) -> None:
        self._store = store
        self._bodies = bodies
        self._periods = periods or RetentionPeriods()
        self._rows = rows
        self._batches = batches

    async def preview(self) -> Removed:
        """What a sweep would remove now."""
        return await self._store.count(self._periods, with_bodies_elsewhere=self._bodies is not None)

    async def sweep(self) -> Removed:
        """Remove what is over. A kind that fails for now costs the others nothing; the next sweep tries it again."""
        periods, store = self._periods, self._store
        events, more_events = await self._whole(
            "events", lambda: store.forget_events(days=periods.events_days, limit=self._rows), self._rows
        )
        outbox, more_outbox = await self._whole(
            "sent events of the outbox",
            lambda: store.forget_outbox(days=periods.outbox_days, limit=self._rows),
            self._rows,
        )
        deliveries, more_deliveries = await self._whole(
            "deliveries", lambda: store.forget_deliveries(days=periods.deliveries_days, limit=self._rows), self._rows
        )
        partitions, more_partitions = await self._whole("partitions of spans", self._partition, 1)
        spans, more_spans = await self._whole(
            "spans", lambda: store.forget_spans(days=periods.spans_days, limit=self._rows), self._rows
        )
        runs, more_runs = await self._runs()
        return Removed(
            runs=runs,
            span_partitions=partitions,
            spans=spans,
            events=events,
            outbox=outbox,
            deliveries=deliveries,
            left=more_events or more_outbox or more_deliveries or more_partitions or more_spans or more_runs,
        )

    async def _partition(self) -> int:
        return 0 if await self._store.drop_span_partition(days=self._periods.spans_days) is None else 1

    async def _whole(self, what: str, batch: Callable[[], Awaitable[int]], full: int) -> tuple[int, bool]:
        """Batches until one is not full; how many went, and whether some may be left."""
        gone = 0
        try:
            for _ in range(self._batches):
                went = await batch()
                gone += went
                if went < full:
                    return gone, False
        except RetryLater as error:
            _log.warning("%s whose time is over wait for the next sweep: %s", what, error)
        return gone, True

    async def _runs(self) -> tuple[int, bool]:
        days, gone = self._periods.runs_days, 0
        try:
            for _ in range(self._batches):
                trees = await self._store.outlived_trees(
                    days=days, with_bodies_elsewhere=self._bodies is not None, limit=TREES
                )
                for tree in trees:
                    gone += await self._forget(tree, days)
                if len(trees) < TREES:
                    return gone, False
        except RetryLater as error:
            _log.warning("runs whose time is over wait for the next sweep: %s", error)
        return gone, True

    async def _forget(self, tree: OutlivedTree, days: int) -> int:
        if self._bodies is not None:
            for run_id in tree.run_ids:
                await self._bodies.forget_run(tree.organization_id, run_id)
        return await self._store.forget_tree(tree, days=days)
