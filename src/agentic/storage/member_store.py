"""Members of organizations. The statements stand in ``queries/members.sql``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agentic.contract.principal import Role
from agentic.storage.database import Database
from agentic.storage.queries import load_queries


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A person in an organization."""

    user_id: UUID
    role: Role
    since: datetime


class PostgresMemberStore:
    """Reads members and gives roles. Asks nobody's leave: whoever reaches it decides who may."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("members")

    async def list(self, organization_id: UUID) -> Sequence[Member]:
        """The members, the most powerful first."""
        rows = await self._db.all(self._sql["list"], {"organization_id": organization_id})
        members = [Member(user_id=row["user_id"], role=Role(row["role"]), since=row["created_at"]) for row in rows]
        return sorted(members, key=lambda member: (-tuple(Role).index(member.role), member.since))

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        """The role of a person; ``None`` for nobody of the organization."""
        row = await self._db.one(self._sql["role"], {"organization_id": organization_id, "user_id": user_id})
        return None if row is None else Role(row["role"])

    async def put(self, organization_id: UUID, user_id: UUID, role: Role) -> None:
        """Make a person a member, or change the role. Counts at the next decision and call (D2)."""
        await self._db.count(
            self._sql["put"], {"organization_id": organization_id, "user_id": user_id, "role": str(role)}
        )
