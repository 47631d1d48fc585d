"""From what a handler returned to what a call answers: schema, redaction, bound, label (ADR 0014).

Total: after an effect nothing here may raise, because a finished effect is never turned into a failure by its own result (J4).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from uuid import UUID, uuid4

from pydantic import BaseModel

from agentic.contract.plain import plain
from agentic.contract.results import ErrorCode, ToolResult, ToolResultMeta
from agentic.contract.trust import Trust
from agentic.services.tools.models import MAX_OUTPUT_BYTES, ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.output_validation import validate_output
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.result_boundary import BoundaryLimits, BoundedResult, apply_boundary

_log = logging.getLogger(__name__)


LARGE_PARTS = 2_000
LARGE_CHARS = 256 * 1024
"""From here on bringing an answer into a result takes long enough to be done beside the event loop, which renews leases."""


async def bounded(
    spec: ToolSpec, value: object, *, span_id: UUID, secrets: Sequence[str]
) -> tuple[ToolResult, ArtifactRecord | None]:
    """``bounded_result``, in a thread when the answer is large."""
    if is_large(value):
        return await asyncio.to_thread(bounded_result, spec, value, span_id=span_id, secrets=secrets)
    return bounded_result(spec, value, span_id=span_id, secrets=secrets)


def is_large(value: object) -> bool:
    """Whether a value has many parts or much text. Looks at no more parts than it takes to know."""
    chars = 0
    waiting = [value]
    for _ in range(LARGE_PARTS):
        if not waiting:
            return False
        part = waiting.pop()
        if isinstance(part, str | bytes | bytearray):
            chars += len(part)
        elif isinstance(part, Mapping):
            waiting.extend(islice(part.values(), LARGE_PARTS))
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(islice(part, LARGE_PARTS))
        elif isinstance(part, BaseModel):
            waiting.extend(vars(part).values())
        if chars > LARGE_CHARS:
            return True
    return bool(waiting)


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
