"""What a demo makes of the people it finds."""

from uuid import uuid4

import pytest

from agentic.contract.principal import Role
from agentic.local.demo.membership import give_at_least
from agentic.storage.approval_store import PostgresApprovalStore
from agentic.storage.database import Database
from agentic.storage.pool import open_pool


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, Role.OPERATOR), (Role.MEMBER, Role.OPERATOR), (Role.OPERATOR, Role.OPERATOR), (Role.ADMIN, Role.ADMIN)],
    ids=["nobody", "a member", "an operator", "an admin"],
)
async def test_nobody_is_less_after_a_demo_than_before(database: str, before: Role | None, after: Role) -> None:
    organization_id, user_id = uuid4(), uuid4()
    async with open_pool(database, max_size=1) as pool:
        people = PostgresApprovalStore(Database(pool))
        if before is not None:
            await people.put_member(organization_id, user_id, before)
        await give_at_least(people, organization_id, user_id, Role.OPERATOR)
        assert await people.role(organization_id, user_id) is after
