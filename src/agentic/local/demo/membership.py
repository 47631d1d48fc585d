"""Who is who in the demo's organization."""

from uuid import UUID

from agentic.contract.principal import Role
from agentic.storage.approval_store import PostgresApprovalStore


async def give_at_least(people: PostgresApprovalStore, organization_id: UUID, user_id: UUID, role: Role) -> None:
    """Give a person a role, unless they hold it already: whoever was made admin stays one through the next demo."""
    held = await people.role(organization_id, user_id)
    if held is None or not held.holds(role):
        await people.put_member(organization_id, user_id, role)
