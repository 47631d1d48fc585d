"""Where rules are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from agentic.services.policy.rules import Rule, RuleDraft
from agentic.services.tools.ports import RulesVersion


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRules:
    """The live rows for an organization, the platform's included, as of one moment."""

    version: RulesVersion
    rules: Sequence[Rule]


class RuleStore(Protocol):
    """Rules by organization; ``None`` stands for the platform, whose rules count for all."""

    async def live(self, organization_id: UUID | None) -> StoredRules:
        """The live rows and the version they have, in one statement.

        Raises:
            StorageUnavailable: the database does not answer; nothing is decided without it (D4).
        """
        ...

    async def save(self, draft: RuleDraft, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        """Store a rule, superseding the one of that name; ``None`` when the person is no admin of the organization."""
        ...

    async def retire(self, name: str, *, organization_id: UUID | None, user_id: UUID | None) -> Rule | None:
        """End a rule; its last version, or ``None`` when there is none or the person is no admin."""
        ...

    async def is_admin(self, organization_id: UUID, user_id: UUID) -> bool:
        """Whether the person may change rules there."""
        ...
