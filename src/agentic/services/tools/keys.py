"""The keys of a call: where it stands in the journal, and what the vendor is told (ADR 0007, 0010; J7)."""

import hashlib
from uuid import UUID, uuid5

from agentic.contract.canonical import canonical, digest
from agentic.services.tools.arguments import InvalidArguments, read_arguments
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
    return usage_id_of(claim.key.organization_id, claim.key.scope, claim.key.key, claim.epoch, index)


def usage_id_of(organization_id: UUID, scope: str, key: str, epoch: int, index: int = 0) -> UUID:
    """``usage_id`` for whoever knows the claim by its row."""
    return uuid5(_USAGE, f"{organization_id}:{scope}:{key}:{epoch}:{index}")


def read_usage_id(span_id: UUID, index: int = 0) -> UUID:
    """The id of a usage row of a metered read, of which each attempt is an operation of its own. The first is its hold's id, too."""
    return uuid5(_USAGE, f"read:{span_id}:{index}")


def repetition_key(tool: str, arguments_text: str | None) -> str:
    """What two calls have in common when they are the same call again, however it is written (ADR 0028).

    The order of members, white space and the spelling of a number make no other call; nothing, `null` and `[]` are no arguments.
    Text that cannot be read stands for itself. The tool's schema has no say, so a call to no tool has a key as well.

    Args:
        tool: platform name, or the name the model wrote when no tool has it.
        arguments_text: the model's own text.
    """
    try:
        value = read_arguments(arguments_text)
        read, body = b"value", canonical({} if value is None or value == [] else value)
    except InvalidArguments:
        read, body = b"text", str(arguments_text).encode("utf-8", "surrogatepass")
    parts = (b"agentic.repetition.v1", tool.encode("utf-8", "surrogatepass"), read, body)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
