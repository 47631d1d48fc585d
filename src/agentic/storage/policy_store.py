"""Rules in Postgres. The statements stand in ``queries/policy.sql``."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from agentic.services.policy.ports import StoredRules
from agentic.services.policy.rules import Rule, RuleDraft, RuleOrigin
from agentic.services.tools.ports import RulesVersion
from agentic.storage.database import Database
from agentic.storage.encoding import text
from agentic.storage.queries import load_queries


class PostgresPolicyStore:
    """Implements ``RuleStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("policy")

    async def live(self, organization_id: UUID | None) -> StoredRules:
        rows = await self._db.all(self._sql["live"], {"organization_id": organization_id})
        return StoredRules(
            version=RulesVersion(platform=rows[0]["platform_version"], organization=rows[0]["organization_version"]),
            rules=[_rule(row) for row in rows if row["id"] is not None],
        )

    async def save(self, draft: RuleDraft, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        whose = {"organization_id": organization_id, "user_id": user_id, "name": draft.name}
        params = {
            **whose,
            "effect": str(draft.effect),
            "tool": draft.tool,
            "side_effects": _set(draft.side_effects),
            "risk": _set(draft.risk),
            "egress": draft.egress,
            "condition": draft.condition,
            "covers_external": draft.covers_external,
            "four_eyes": draft.four_eyes,
            "reason": text(draft.reason),
            "enabled": draft.enabled,
        }
        saved = await self._change(whose, ("supersede", whose), ("insert", params))
        return None if saved is None else _rule(saved)

    async def retire(self, name: str, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        whose = {"organization_id": organization_id, "user_id": user_id, "name": name}
        retired = await self._change(whose, ("supersede", whose))
        return None if retired is None else _rule(retired)

    async def is_admin(self, organization_id: UUID, user_id: UUID) -> bool:
        row = await self._db.one(self._sql["is_admin"], {"organization_id": organization_id, "user_id": user_id})
        return row is not None and row["admin"] is True

    async def _change(
        self, whose: Mapping[str, Any], *statements: tuple[str, Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """Run statements as one transaction, after every other change of the scope; the first row of the last."""
        rows = await self._db.atomic(
            [(self._sql["lock_scope"], whose), *((self._sql[name], params) for name, params in statements)]
        )
        return rows[-1]


def _set(values: frozenset[Any] | None) -> list[str] | None:
    return None if values is None else sorted(map(str, values))


def _rule(row: Mapping[str, Any]) -> Rule:
    fields = {name: value for name, value in row.items() if name in Rule.model_fields}
    origin = RuleOrigin.PLATFORM if row["organization_id"] is None else RuleOrigin.ORGANIZATION
    return Rule.model_validate({**fields, "origin": origin})
