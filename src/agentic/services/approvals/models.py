"""An approval as people see it, and the decision they make."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from agentic.contract.values import Value


class Verdict(StrEnum):
    """What a person may answer."""

    APPROVED = "approved"
    REJECTED = "rejected"


class Approval(Value):
    """One question to a person, and its answer. ``status`` is by database time: a pending row past its time reads expired (A4)."""

    id: UUID
    run_id: UUID
    tool: str
    contract_hash: str
    digest: str
    arguments_text: str
    shown: str | None
    rule_id: str
    rule_version: int
    reason: str
    requested_by: UUID | None
    four_eyes: bool = False
    """Somebody else than the requester decides (A5)."""
    connection_id: UUID | None = None
    """The connection it will use, and no other; ``None`` for a call that acts in no account."""
    account: str | None = None
    """That connection in words: its label, and the address that its facts name."""
    status: str
    expires_at: datetime
    decided_at: datetime | None
    decided_by: UUID | None
    comment: str | None
    created_at: datetime
