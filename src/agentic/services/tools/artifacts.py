"""What a call leaves to be kept beside its answer, and who brings the bytes to their place (B1, ADR 0014).

A model is never given a way to read any of it back.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final, Protocol
from uuid import UUID, uuid4, uuid5

from agentic.contract.trust import Trust
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.redaction import redact_bytes

MAX_ARTIFACT_BYTES: Final = 8 * 1024 * 1024
MAX_ARTIFACTS: Final = 16
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


class ArtifactKeeper(Protocol):
    """Brings the bytes of an artifact to where they are kept, before the commit that names them."""

    async def keep(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        """Return the record as it is to be committed: with its bytes, or with the place that holds them.

        Never raises: a finished effect is not lost because its answer's overflow could not be stored elsewhere (J4). Called
        again with the same record it leaves one copy.
        """
        ...


class InTheRow:
    """Keeps the bytes in the artifact's own row, written by the commit that names it."""

    async def keep(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        """Return the record as it is."""
        return record


@dataclass(kw_only=True, slots=True)
class Saved:
    """The artifacts a handler saved during one attempt; they are kept when the attempt's answer is, and forgotten otherwise."""

    items: list[tuple[UUID, bytes, str]] = field(default_factory=list)

    def add(self, body: bytes, media_type: str) -> UUID:
        """Take one; see ``CallContext.save_artifact``."""
        if len(body) > MAX_ARTIFACT_BYTES:
            raise ValueError(f"an artifact has at most {MAX_ARTIFACT_BYTES} bytes; this one has {len(body)}")
        if len(self.items) >= MAX_ARTIFACTS:
            raise ValueError(f"a call saves at most {MAX_ARTIFACTS} artifacts")
        if _MEDIA_TYPE.fullmatch(media_type) is None:
            raise ValueError("a media type is lower case and without parameters, such as text/csv")
        id = uuid4()
        self.items.append((id, bytes(body), media_type))
        return id

    def records(self, *, span_id: UUID, trust: Trust, secrets: tuple[str, ...]) -> list[ArtifactRecord]:
        """What was saved, without the secrets of the call (B2)."""
        return [
            ArtifactRecord(
                id=id,
                span_id=span_id,
                trust=trust,
                body=redact_bytes(body, secrets),
                complete=True,
                media_type=media_type,
            )
            for id, body, media_type in self.items
        ]


def answer_artifact_id(span_id: UUID) -> UUID:
    """The id under which the whole of an answer is kept: one a span, so that storing it twice is storing it once."""
    return uuid5(span_id, "answer")


def placed(record: ArtifactRecord, place: str) -> ArtifactRecord:
    """The record of an artifact whose bytes are at ``place``."""
    return replace(record, body=None, place=place, sha256=record.sha256, size_bytes=record.size_bytes)
