"""Artifacts as the parameters of a statement that writes them: a list a column."""

from collections.abc import Sequence
from typing import Any

from agentic.services.tools.records import ArtifactRecord


def artifact_columns(records: Sequence[ArtifactRecord]) -> dict[str, Any]:
    """The parameters ``artifact_…`` of the statements that end a call or append to a run."""
    return {
        "artifact_ids": [item.id for item in records],
        "artifact_spans": [item.span_id for item in records],
        "artifact_media_types": [item.media_type for item in records],
        "artifact_trusts": [str(item.trust) for item in records],
        "artifact_hashes": [item.sha256 for item in records],
        "artifact_sizes": [item.size_bytes for item in records],
        "artifact_completes": [item.complete for item in records],
        "artifact_places": [item.place for item in records],
        "artifact_bodies": [item.body for item in records],
    }
