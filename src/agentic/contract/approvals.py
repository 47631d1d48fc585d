"""The question put to a person: exactly one call, as it will run (A1)."""

from uuid import UUID

from agentic.contract.values import Value


class ApprovalRequest(Value):
    """What an approval covers, and what the person is shown."""

    organization_id: UUID
    run_id: UUID
    tool: str
    contract_hash: str
    digest: str
    """Digest of the effective arguments."""
    arguments_text: str
    """Canonical JSON of the arguments: what was shown is what runs."""
    shown: str | None = None
    """One line rendered by the tool's preview, at most 512 bytes; ``None`` falls back to the arguments."""
    rule_id: str
    rule_version: int
    reason: str
    four_eyes: bool = False
    """The person the run acts for may not decide it (A5)."""
    connection_id: UUID | None = None
    """The connection it will use, and no other; ``None`` for a call that acts in no account."""
    account: str | None = None
    """That connection in words, without a secret: its label, and the address that its facts name."""
    approval_id: UUID | None = None
    """Set when the same question is already open."""
    span_id: UUID | None = None
    """The row of the call that asks; filing puts the approval's id on it (D3)."""
