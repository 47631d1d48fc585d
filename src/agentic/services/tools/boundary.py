"""From what a handler returned to what a call answers: schema, redaction, bound, label (STATE step 10).

Total: after an effect nothing here may raise, because a finished effect is never turned into a failure by its own result (J4).
"""

import logging
from collections.abc import Sequence
from uuid import UUID, uuid4

from agentic.contract.plain import plain
from agentic.contract.results import ErrorCode, ToolResult, ToolResultMeta
from agentic.contract.trust import Trust
from agentic.services.tools.models import MAX_OUTPUT_BYTES, ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.output_validation import validate_output
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.result_boundary import BoundaryLimits, BoundedResult, apply_boundary

_log = logging.getLogger(__name__)


def bounded_result(
    spec: ToolSpec, value: object, *, span_id: UUID, secrets: Sequence[str]
) -> tuple[ToolResult, ArtifactRecord | None]:
    """The result of a handler that returned, and what was too large to show, if anything was.

    An answer off its schema is ``invalid_output`` for a read; for an effect the call is done and its answer unreadable.
    """
    try:
        fault = validate_output(plain(value), spec.output_schema)
        bounded = apply_boundary(
            value,
            spec_limits=BoundaryLimits(
                max_results=spec.max_results,
                max_output_bytes=spec.max_output_bytes or MAX_OUTPUT_BYTES,
                item_kind=spec.item_kind,
            ),
            secrets=secrets,
            untrusted=spec.output_trust is Trust.EXTERNAL,
        )
    except Exception:  # whatever a returned object does to us, the effect has happened
        _log.exception("the answer of %s could not be brought into a result", spec.name)
        return _unreadable(spec), None
    if fault is not None:
        _log.warning("%s answered off its output schema: %s", spec.name, fault)
        return _unreadable(spec), None
    artifact = _artifact(spec, bounded, span_id)
    meta = ToolResultMeta(
        count=bounded.count,
        truncated=bounded.truncated,
        untrusted=bounded.untrusted,
        artifact_id=artifact.id if artifact is not None else None,
    )
    return ToolResult(ok=True, data=bounded.data, meta=meta), artifact


def _unreadable(spec: ToolSpec) -> ToolResult:
    if spec.journaled:
        return ToolResult(ok=True, meta=ToolResultMeta(unreadable=True))
    return refusal(ErrorCode.INVALID_OUTPUT)


def _artifact(spec: ToolSpec, bounded: BoundedResult, span_id: UUID) -> ArtifactRecord | None:
    if bounded.captured is None:
        return None
    return ArtifactRecord(
        id=uuid4(), span_id=span_id, trust=spec.output_trust, body=bounded.captured, complete=bounded.complete
    )
