"""The store of approvals."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.principal import Role
from agentic.services.approvals.models import Approval, Verdict


class ApprovalStore(Protocol):
    """Decisions are compare-and-set on database time."""

    async def decide(
        self, organization_id: UUID, approval_id: UUID, *, user_id: UUID, verdict: Verdict, comment: str | None
    ) -> UUID | None:
        """Decide a pending approval and wake its run; the nudge's id, or ``None`` when it was not pending or the person may not."""
        ...

    async def read(self, organization_id: UUID, approval_id: UUID) -> Approval | None:
        """One approval."""
        ...

    async def find(
        self, organization_id: UUID, *, run_id: UUID | None, status: str | None, limit: int
    ) -> Sequence[Approval]:
        """Approvals, newest first."""
        ...

    async def expire(self, *, limit: int) -> list[UUID]:
        """Mark what time has decided; the nudges of the runs that waited."""
        ...

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        """A person's role."""
        ...
