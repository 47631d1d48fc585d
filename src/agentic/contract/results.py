"""What a call answers: the stable codes, the error, the result (ADR 0013)."""

from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from agentic.contract.trust import Trust
from agentic.contract.values import Value


class ErrorCode(StrEnum):
    """Stable codes of refusals and failures. Their fixed texts stand in ``services.tools.outcomes``."""

    # the pipeline's own: no handler ever answers with one of these
    DENIED = "denied"
    REJECTED = "rejected"
    EXPIRED = "expired"
    BATCH_TOO_LARGE = "batch_too_large"
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_UNAVAILABLE = "tool_unavailable"
    TOOL_CHANGED = "tool_changed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    INTERNAL_ERROR = "internal_error"
    # what the tool, or the service behind it, said
    INVALID_INPUT = "invalid_input"
    NOT_FOUND = "not_found"
    """The target, not the tool."""
    CONFLICT = "conflict"
    PERMISSION_REFUSED = "permission_refused"
    """The remote system refused the account; our own refusal is ``denied``."""
    UPSTREAM_REFUSED = "upstream_refused"
    """The service judged the request and said no."""
    UPSTREAM_ERROR = "upstream_error"
    """The service reported an error of its own."""
    INVALID_OUTPUT = "invalid_output"
    OUTPUT_TOO_LARGE = "output_too_large"
    # nothing was reached, or not now
    RETRYABLE_UPSTREAM = "retryable_upstream"
    UNAVAILABLE = "unavailable"
    TRANSPORT = "transport"
    """The connection failed before an answer."""
    SERVER_UNREACHABLE = "server_unreachable"
    SERVER_UNAUTHORIZED = "server_unauthorized"
    """The server rejected our credential."""
    WITHDRAWN = "withdrawn"
    """The server no longer publishes the tool."""
    DEVICE_OFFLINE = "device_offline"
    CONNECTION_REQUIRED = "connection_required"
    CONNECTION_EXPIRED = "connection_expired"
    CONNECTION_REVOKED = "connection_revoked"
    CONNECTION_AMBIGUOUS = "connection_ambiguous"


ToolStop = Literal["budget_exhausted", "fault"]
"""What the run does about an answer of the meter; written by the invoker alone, never shown to a model.

``budget_exhausted``: the run ends partial under ``meta.partial_reason``. ``fault``: it ends failed, because the deployment is wired
wrongly and no model can act on that. Nothing a handler returns or raises sets it (ADR 0029).
"""


class Said(Value):
    """Somebody else's words about a call, bounded and redacted; the model reads them only as labelled data (B3)."""

    by: Literal["remote", "domain", "reviewer"]
    text: str


class ToolError(Value):
    """Why a call did not succeed."""

    code: ErrorCode
    message: str
    """The fixed text of the code, byte for byte."""
    retryable: bool = False
    detail: str | None = None
    """Where and which rule, in words of ours: never a value, never a name that our side did not declare. Follows as labelled data."""
    said: Said | None = None


class ToolResultMeta(Value):
    """Facts about a result that are not the result."""

    count: int | None = None
    truncated: bool = False
    untrusted: bool = False
    trust: Trust | None = None
    """Label of the answer's text (ADR 0012); ``None`` in answers stored before there was one: the tool's own label counts."""
    usage_id: UUID | None = None
    artifact_id: UUID | None = None
    """Where what was left out is kept whole (B1)."""
    unreadable: bool = False
    """The effect happened; its answer did not fit its schema (J4)."""
    replayed: bool = False
    """Answered from the journal; nothing ran."""
    partial_reason: Literal["budget_exhausted"] | None = None
    """Why the run that is stopped by this answer ends partial; the invoker's word, never shown to a model (M2)."""


class ToolResult(Value):
    """The answer of one call: it succeeded with ``data`` or carries an ``error``."""

    ok: bool
    data: Any = None
    error: ToolError | None = None
    meta: ToolResultMeta = ToolResultMeta()
    stop: ToolStop | None = None
