"""From what a handler returned to what a call answers: schema, redaction, bound, label (ADR 0014).

Total: after an effect nothing here may raise, because a finished effect is never turned into a failure by its own result (J4).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from pydantic import BaseModel

from agentic.contract.faults import where
from agentic.contract.plain import plain
from agentic.contract.results import ErrorCode, ToolResult, ToolResultMeta
from agentic.contract.trust import Trust
from agentic.services.tools.artifacts import answer_artifact_id
from agentic.services.tools.models import MAX_OUTPUT_BYTES, ToolSpec
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.output_validation import validate_output
from agentic.services.tools.records import ArtifactRecord
from agentic.services.tools.redaction import redact_text
from agentic.services.tools.result_boundary import BoundaryLimits, bound_plain

_log = logging.getLogger(__name__)


LARGE_PARTS = 2_000
LARGE_CHARS = 256 * 1024
"""From here on bringing an answer into a result takes long enough to be done beside the event loop, which renews leases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the boundary must know of the call whose answer it takes.

    Attributes:
        secrets: the exact secret values the call used.
        trust: the label of the answer: the tool's, or a lower one the handler gave (ADR 0012).
        max_output_bytes: the platform's limit; a tool's own lower one wins.
    """

    span_id: UUID
    secrets: tuple[str, ...] = ()
    trust: Trust = Trust.PLATFORM
    max_output_bytes: int = MAX_OUTPUT_BYTES


async def bounded(spec: ToolSpec, value: object, facts: Facts) -> tuple[ToolResult, ArtifactRecord | None]:
    """``bounded_result``, in a thread when the answer is large."""
    if is_large(value):
        return await asyncio.to_thread(bounded_result, spec, value, facts)
    return bounded_result(spec, value, facts)


def is_large(value: object) -> bool:
    """Whether a value has many parts or much text; whatever cannot be looked at counts as large. Looks at no more than it takes."""
    try:
        return _is_large(value)
    except Exception:  # what a returned object does when it is looked at is for the boundary's own guard (J4)
        return True


def _is_large(value: object) -> bool:
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


def bounded_result(spec: ToolSpec, value: object, facts: Facts) -> tuple[ToolResult, ArtifactRecord | None]:
    """The result of a handler that returned, and what was too large to show, if anything was.

    An answer off its schema is ``invalid_output`` for a read; for an effect the call is done and its answer unreadable.
    """
    trust = spec.output_trust.lowered_by(facts.trust)
    artifact_id = answer_artifact_id(facts.span_id)
    try:
        whole = plain(value)
        fault = validate_output(whole, spec.output_schema)
        if fault is not None:
            _log.warning("%s answered off its output schema: %s", spec.name, redact_text(fault, facts.secrets))
            return _unreadable(spec, trust), None
        bounded = bound_plain(
            whole,
            spec_limits=BoundaryLimits(
                max_results=spec.max_results,
                max_output_bytes=min(spec.max_output_bytes or MAX_OUTPUT_BYTES, facts.max_output_bytes),
                item_kind=spec.item_kind,
            ),
            secrets=facts.secrets,
            untrusted=trust is Trust.EXTERNAL,
            artifact_id=artifact_id,
        )
    except Exception as error:  # whatever a returned object does to us, the effect has happened
        # by place: the text of an error raised over an answer may quote it
        _log.error("the answer of %s could not be brought into a result: %s", spec.name, where(error))
        return _unreadable(spec, trust), None
    artifact = None
    if bounded.captured is not None:
        artifact = ArtifactRecord(
            id=artifact_id, span_id=facts.span_id, trust=trust, body=bounded.captured, complete=bounded.complete
        )
    meta = ToolResultMeta(
        count=bounded.count,
        truncated=bounded.truncated,
        untrusted=bounded.untrusted,
        trust=trust,
        artifact_id=artifact.id if artifact is not None else None,
    )
    return ToolResult(ok=True, data=bounded.data, meta=meta), artifact


def _unreadable(spec: ToolSpec, trust: Trust) -> ToolResult:
    if spec.journaled:
        return ToolResult(ok=True, meta=ToolResultMeta(unreadable=True, trust=trust))
    return refusal(ErrorCode.INVALID_OUTPUT)
