"""A call whose outcome nobody knows, as an operator sees it."""

from datetime import datetime
from uuid import UUID

from agentic.contract.values import Value


class UncertainCall(Value):
    """One uncertain claim. ``ref`` names it in commands: the first sixteen digits of its key's digest."""

    ref: str
    organization_id: UUID
    run_id: UUID | None
    scope: str
    key: str
    tool: str | None
    epoch: int
    attempt: int
    arguments_text: str | None
    uncertain_at: datetime
    uncertain_reason: str
    effect_sent_at: datetime | None
    proposal_id: UUID | None


class Settlement(Value):
    """How an unknown outcome was settled."""

    happened: bool
    by: UUID
    at: datetime
