"""The sweeps: what a lost event or a dead worker left is found by reading rows (W1, J5)."""

import logging
from uuid import UUID

from agentic.services.approvals.service import ApprovalService
from agentic.services.artifacts.ports import BodiesUnavailable
from agentic.services.artifacts.service import Artifacts
from agentic.services.journal.service import JournalService
from agentic.services.outbox.service import Outbox
from agentic.services.runs.ports import RunStore
from agentic.services.runs.workflows import WorkflowStore

_log = logging.getLogger(__name__)
QUIET_S = 30.0
"""A due run that was nudged within this time is left alone."""
CLAIM_GRACE_S = 60.0
"""How long after its lease a stale claim is left to its own run."""
LIMIT = 200


class Sweeps:
    """Each sweep is safe to run at any time, twice at once too."""

    def __init__(
        self,
        *,
        runs: RunStore,
        approvals: ApprovalService,
        journal: JournalService,
        outbox: Outbox,
        artifacts: Artifacts | None = None,
        workflows: WorkflowStore | None = None,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._runs = runs
        self._approvals = approvals
        self._journal = journal
        self._outbox = outbox
        self._artifacts = artifacts
        self._workflows = workflows
        self._quiet_s = quiet_s

    async def outbox(self) -> int:
        """Send again what is still pending. Returns how many events arrived."""
        return await self._outbox.sweep()

    async def runs(self) -> int:
        """Expire approvals, settle stale claims, count lapsed holds as spent, nudge due runs, remove outlived artifacts.

        Returns how many rows moved.
        """
        await self._runs.ensure_partitions()
        expired = await self._approvals.expire(limit=LIMIT)
        settled = await self._journal.sweep(grace_s=CLAIM_GRACE_S, limit=LIMIT)
        spent = await self._journal.sweep_holds(limit=LIMIT)
        ended, nudges = await self._over_workflows()
        nudges += await self._runs.nudge_due(quiet_s=self._quiet_s, limit=LIMIT)
        await self._outbox.flush(nudges)
        return expired + settled + spent + ended + len(nudges) + await self._outlived_artifacts()

    async def _over_workflows(self) -> tuple[int, list[UUID]]:
        """End the runs of workflows that are over: nobody leads them but their functions, which may be gone (W4)."""
        if self._workflows is None:
            return 0, []
        ended, nudges = await self._workflows.sweep(limit=LIMIT)
        return ended, list(nudges)

    async def _outlived_artifacts(self) -> int:
        """Remove what runs left whose time is over. An object store that is away costs the other sweeps nothing."""
        if self._artifacts is None:
            return 0
        try:
            return await self._artifacts.sweep(limit=LIMIT)
        except BodiesUnavailable as error:
            _log.warning("artifacts whose time is over wait for the next sweep: %s", error)
            return 0
