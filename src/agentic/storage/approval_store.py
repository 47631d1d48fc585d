"""Approvals in Postgres. The statements stand in ``queries/approvals.sql``."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from agentic.contract.events import EventName
from agentic.contract.principal import Role
from agentic.services.approvals.models import Approval, Verdict
from agentic.storage.database import Database
from agentic.storage.encoding import text
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.queries import load_queries


class PostgresApprovalStore:
    """Implements ``ApprovalStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("approvals")
        self._members = PostgresMemberStore(database)

    async def decide(
        self, organization_id: UUID, approval_id: UUID, *, user_id: UUID, verdict: Verdict, comment: str | None
    ) -> UUID | None:
        event = uuid4()
        row = await self._db.one(
            self._sql["decide"],
            {
                "organization_id": organization_id,
                "approval_id": approval_id,
                "user_id": user_id,
                "status": str(verdict),
                "comment": text(comment),
                "event_id": event,
                "event_name": str(EventName.RUN_DECIDED),
            },
        )
        return None if row is None else event

    async def read(self, organization_id: UUID, approval_id: UUID) -> Approval | None:
        row = await self._db.one(self._sql["read"], {"organization_id": organization_id, "approval_id": approval_id})
        return None if row is None else Approval.model_validate(row)

    async def find(
        self, organization_id: UUID, *, run_id: UUID | None, status: str | None, limit: int
    ) -> Sequence[Approval]:
        params = {"organization_id": organization_id, "run_id": run_id, "status": status, "limit": limit}
        return [Approval.model_validate(row) for row in await self._db.all(self._sql["list"], params)]

    async def expire(self, *, limit: int) -> list[UUID]:
        params = {"limit": limit, "event_name": str(EventName.RUN_NUDGED)}
        return [row["id"] for row in await self._db.all(self._sql["expire"], params)]

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        return await self._members.role(organization_id, user_id)

    async def put_member(self, organization_id: UUID, user_id: UUID, role: Role) -> None:
        """Make a person a member, or change the role."""
        await self._members.put(organization_id, user_id, role)
