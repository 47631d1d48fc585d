"""People deciding calls: once, with authority, on database time (A3, A4, A5)."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.services.approvals.models import Approval, Verdict
from agentic.services.approvals.ports import ApprovalStore

MAX_COMMENT_CHARS = 2000
Flush = Callable[[Sequence[UUID]], Awaitable[None]]
"""Sends outbox rows that were just committed."""


class ApprovalService:
    """Lists and decides approvals."""

    def __init__(self, *, store: ApprovalStore, flush: Flush) -> None:
        self._store = store
        self._flush = flush

    async def decide(
        self, organization_id: UUID, approval_id: UUID, *, user_id: UUID, verdict: Verdict, comment: str | None = None
    ) -> Approval:
        """Decide one approval. The same decision again succeeds with the same answer.

        Args:
            user_id: the authenticated person.
            comment: at most 2,000 characters; reaches the model as that person's words.

        Raises:
            NotFound: no such approval in this organization.
            NotPermitted: the person is not an approver there, or started the run and the rule asks for somebody else.
            Conflict: it was decided the other way, expired, or its run ended; the message names who and when.
        """
        if comment is not None and len(comment) > MAX_COMMENT_CHARS:
            raise Conflict(f"a comment has at most {MAX_COMMENT_CHARS} characters; this one has {len(comment)}")
        nudge = await self._store.decide(
            organization_id, approval_id, user_id=user_id, verdict=verdict, comment=comment
        )
        if nudge is not None:
            await self._flush([nudge])
        approval = await self.show(organization_id, approval_id)
        if nudge is None:
            await self._explain(organization_id, approval, user_id=user_id, verdict=verdict)
        return approval

    async def show(self, organization_id: UUID, approval_id: UUID) -> Approval:
        """One approval.

        Raises:
            NotFound: no such approval in this organization.
        """
        approval = await self._store.read(organization_id, approval_id)
        if approval is None:
            raise NotFound(
                f"there is no approval {approval_id} in this organization; 'agentic approvals list' shows those there are"
            )
        return approval

    async def find(
        self, organization_id: UUID, *, run_id: UUID | None = None, status: str | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Approvals, newest first."""
        return await self._store.find(organization_id, run_id=run_id, status=status, limit=limit)

    async def expire(self, *, limit: int = 100) -> int:
        """Mark what time has decided, and wake the runs that waited. Returns how many runs were woken."""
        nudges = await self._store.expire(limit=limit)
        await self._flush(nudges)
        return len(nudges)

    async def _explain(self, organization_id: UUID, approval: Approval, *, user_id: UUID, verdict: Verdict) -> None:
        if approval.status == verdict:
            return
        if approval.status == "pending":
            role = await self._store.role(organization_id, user_id)
            if role is None or not role.holds(Role.APPROVER):
                raise NotPermitted(
                    f"deciding takes the role approver in this organization; this person is {role or 'no member'}"
                )
            if approval.four_eyes and approval.requested_by == user_id:
                raise NotPermitted(
                    f"{approval.rule_id} wants a second person: whoever started the run does not decide about its "
                    f"{approval.tool}; ask another approver, or cancel the run"
                )
            raise Conflict(f"approval {approval.id} moved while it was being decided; look again")
        if approval.status in list(Verdict):
            raise Conflict(
                f"approval {approval.id} was already {approval.status} by {approval.decided_by} at {approval.decided_at}"
            )
        raise Conflict(
            f"approval {approval.id} is {approval.status}; the call was not run and this request can no longer be decided"
        )
