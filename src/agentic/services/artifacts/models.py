"""An artifact as it is read."""

from datetime import datetime
from uuid import UUID

from agentic.contract.trust import Trust
from agentic.contract.values import Value


class Artifact(Value):
    """What a call left, without its bytes.

    Attributes:
        sha256: in hex, of the bytes as they are kept.
        complete: ``False`` when the capture stopped at its limit.
        place: where an object store holds the bytes; ``None`` for the row itself.
    """

    id: UUID
    organization_id: UUID
    run_id: UUID
    span_id: UUID | None
    media_type: str
    trust: Trust
    sha256: str
    size_bytes: int
    complete: bool
    place: str | None
    created_at: datetime


class Kept(Value):
    """An artifact and its bytes."""

    artifact: Artifact
    body: bytes
