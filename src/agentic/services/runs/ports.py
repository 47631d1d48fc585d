"""The store of runs. Every write of a segment is fenced on its lease: ``None`` means the lease is not ours any more."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from agentic.contract.approvals import ApprovalRequest
from agentic.services.runs.models import (
    Append,
    Counters,
    Lease,
    LedRun,
    Moved,
    NewRun,
    Parent,
    Place,
    Proposal,
    Renewed,
    RunEnd,
    RunMessage,
    RunPage,
    RunQuery,
    RunTree,
    SessionSoFar,
    Started,
    Unpriced,
)
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.records import JobWait


class RunStore(Protocol):
    """Postgres in every deployment; tests use the embedded one."""

    async def start(self, run: NewRun) -> Started:
        """Start once per (organization, request key).

        Raises:
            Conflict: the key was used before with another input.
            ParentRefuses: the parent is over or being cancelled; nothing of the child exists.
        """
        ...

    async def find(self, organization_id: UUID, request_key: str, *, request_digest: str) -> UUID | None:
        """The run an earlier start with this key made.

        Raises:
            Conflict: the key was used with another input.
        """
        ...

    async def parent(self, organization_id: UUID, run_id: UUID) -> Parent:
        """A run as one that may start others.

        Raises:
            NotFound: no such run in this organization.
        """
        ...

    async def session(
        self, organization_id: UUID, session_id: str, *, user_id: UUID | None, limit: int
    ) -> SessionSoFar:
        """What the ended runs of a person's session said, at most ``limit`` of them; nothing of a run that is still open."""
        ...

    async def take(self, organization_id: UUID, run_id: UUID, *, lease_s: float) -> LedRun | None:
        """Take the lease of a run that is due."""
        ...

    async def renew(self, lease: Lease, *, lease_s: float) -> Renewed | None:
        """Keep the lease, and hear whether the run is being cancelled; ``None`` when it is lost."""
        ...

    async def contracts(self, hashes: Sequence[str]) -> Mapping[str, ToolSpec]:
        """The frozen specs by hash. One that cannot be read is a spec whose calls are unavailable; it raises nothing."""
        ...

    async def messages(self, lease: Lease, *, format: str) -> list[RunMessage]:
        """The run's log in order.

        Raises:
            RunEnded: ``history_unreadable``, when a message is of another format (ADR 0003).
        """
        ...

    async def proposals(self, lease: Lease) -> list[Proposal]:
        """The stored calls of the last pause."""
        ...

    async def append(self, lease: Lease, append: Append) -> Counters | None:
        """The checkpoint."""
        ...

    async def park(
        self, lease: Lease, append: Append, questions: Sequence[ApprovalRequest], *, expires_s: float
    ) -> Moved | None:
        """Append, file the questions and park the run, in one transaction."""
        ...

    async def park_on_job(self, lease: Lease, append: Append, waits: JobWait) -> Moved | None:
        """Append and park the run until a provider's job has ended or the wait is over, in one transaction.

        A job that has ended meanwhile leaves a nudge.
        """
        ...

    async def release(
        self,
        lease: Lease,
        append: Append,
        *,
        due_at: datetime | None = None,
        due_in_s: float | None = None,
        orderly: bool,
        provider_failures: int = 0,
    ) -> Moved | None:
        """Append and give the lease back; due at once, with a nudge, when no time is given.

        Args:
            due_at: when the run comes back, as the database said it: the end of somebody's claim.
            due_in_s: or after how many seconds, by the database's clock.
            orderly: nothing went wrong in the run itself; the count of attempts without progress starts anew.
            provider_failures: how often in a row the model's provider was down, this time included.
        """
        ...

    async def finish(self, lease: Lease, append: Append, end: RunEnd) -> Moved | Unpriced | None:
        """Append and end the run.

        Returns:
            ``Unpriced`` when it would succeed, its money is bounded and a model request of its tree cannot be counted: the append is
            written, the run goes on, and its leader has to end it as failed (D4).
        """
        ...

    async def cancel(
        self, organization_id: UUID, run_id: UUID, *, user_id: UUID | None, reason: str | None = None
    ) -> Sequence[UUID]:
        """Ask the run and the open runs below it to stop.

        Returns:
            The nudges' ids; none when all of them are over or being cancelled already.
        """
        ...

    async def nudge_due(self, *, quiet_s: float, limit: int) -> list[UUID]:
        """The sweep's nudges for runs that are due and were not nudged within ``quiet_s`` seconds."""
        ...

    async def ensure_partitions(self) -> None:
        """Keep room for the spans of this month and the next."""
        ...

    async def tree(self, organization_id: UUID, run_id: UUID) -> RunTree:
        """Everything about a run.

        Raises:
            NotFound: no such run in this organization.
        """
        ...

    async def row(self, organization_id: UUID, run_id: UUID) -> Mapping[str, Any]:
        """A run's own row.

        Raises:
            NotFound: no such run in this organization.
        """
        ...

    async def page(self, organization_id: UUID, query: RunQuery, *, limit: int, behind: Place | None = None) -> RunPage:
        """Runs, the newest first, from behind a place."""
        ...
