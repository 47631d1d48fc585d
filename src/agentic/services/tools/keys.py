"""The keys of a call: where it stands in the journal, and what the vendor is told (DECISIONS 8, 12; J7)."""

import hashlib
from uuid import UUID, uuid5

from agentic.contract.canonical import digest
from agentic.services.tools.ports import CallKey, Claim

_USAGE = UUID("6f1d1d5e-6f0e-5d0c-9c63-2f0f6a1f5a11")


def call_key(
    *, organization_id: UUID, run_id: UUID, tool: str, step_path: str, arguments_digest: str, contract_hash: str
) -> CallKey:
    """The journal key of a call. The model's call id is no part of it: a model asked again mints another."""
    return CallKey(
        organization_id=organization_id,
        run_id=run_id,
        scope=f"tool.{tool}",
        key=f"{run_id}:{step_path}:{arguments_digest}",
        request_hash=digest([arguments_digest, contract_hash]),
    )


def vendor_key(claim: Claim) -> str:
    """The idempotency key a vendor sees: the same on every attempt within an epoch, never chosen by the model."""
    text = "\0".join(
        ("agentic.vendor.v1", str(claim.key.organization_id), claim.key.scope, claim.key.key, str(claim.epoch))
    )
    return hashlib.sha256(text.encode()).hexdigest()


def usage_id(claim: Claim, index: int) -> UUID:
    """The id of a usage row of a claimed call: derived from key and epoch, so that it is written once (M1)."""
    return uuid5(_USAGE, f"{claim.key.organization_id}:{claim.key.scope}:{claim.key.key}:{claim.epoch}:{index}")
