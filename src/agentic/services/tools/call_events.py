"""Events of a call: who it is and how it went, never what was in it (docs/telemetry.md).

The rows hold arguments and results; an event may be kept elsewhere, for longer, by others, so no text of a model, a person or
a remote system is in one. Events are told, not stored: a process that dies between a commit and its event leaves the row alone.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from agentic.services.tools.outcomes import OutcomeStatus

_CALL_ID = re.compile(r"[A-Za-z0-9_.:|=-]{1,128}")
_log = logging.getLogger("agentic.events")
_faults = logging.getLogger(__name__)


class CallEventName(StrEnum):
    """All that is told of a call."""

    PROPOSED = "tool.call.proposed"
    """It reached the invoker. A call that comes back, after a pause or from a dead worker, is proposed anew."""
    AUTHORIZED = "tool.call.authorized"
    """Every check and the policy let it run."""
    DENIED = "tool.call.denied"
    """A rule, a person, a budget or the end of the run said no."""
    STARTED = "tool.call.started"
    """Its handler is about to run; a claim, if it takes one, is committed."""
    COMPLETED = "tool.call.completed"
    FAILED = "tool.call.failed"
    """It did not succeed for another reason than a denial; nothing is unknown."""
    UNCERTAIN = "tool.call.uncertain"
    """It may have happened, and an operator has to look."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEvent:
    """Identity and classification of a call at one moment."""

    name: CallEventName
    invocation_id: UUID | None
    """The row of the run's tree; ``None`` for a claim that names none."""
    run_id: UUID
    step_path: str
    call_id: str | None
    """The provider's id of the call, if it looks like an id."""
    tool_name: str
    """A tool the run has; ``unknown`` for whatever else a model wrote."""
    tool_source: str
    tool_version: int | None
    idempotency_class: str | None
    parallel_group: str | None
    effect_sent: bool
    """The effect may have left."""
    outcome_status: OutcomeStatus | None = None
    """``None`` until the call ends."""
    reason_code: str | None = None
    duration_ms: int | None = None
    """From the proposal to the end, as this process measured it."""
    output_bytes: int | None = None
    """What the caller got of the result, encoded."""
    truncated: bool = False

    def fields(self) -> dict[str, str | int | bool | None]:
        """Everything but the name, as plain data."""
        return {
            "invocation_id": str(self.invocation_id) if self.invocation_id is not None else None,
            "run_id": str(self.run_id),
            "step_path": self.step_path,
            "call_id": self.call_id,
            "tool_name": self.tool_name,
            "tool_source": self.tool_source,
            "tool_version": self.tool_version,
            "outcome_status": self.outcome_status,
            "reason_code": self.reason_code,
            "idempotency_class": self.idempotency_class,
            "effect_sent": self.effect_sent,
            "duration_ms": self.duration_ms,
            "output_bytes": self.output_bytes,
            "truncated": self.truncated,
            "parallel_group": self.parallel_group,
        }


EventSink = Callable[[CallEvent], None]
"""Takes an event at once and without waiting; what it raises is logged and costs the call nothing."""


def tell(event: CallEvent, sink: EventSink) -> None:
    """Hand an event to a sink. What it tells of has happened, so a sink that breaks is logged and stops nobody (J4)."""
    try:
        sink(event)
    except Exception:
        _faults.exception("%s of %s could not be told", event.name, event.tool_name)


def exported_call_id(given: str | None) -> str | None:
    """The provider's id of a call, outside the database; one that is no id is text from outside, and stays in the row."""
    return given if given is not None and _CALL_ID.fullmatch(given) else None


def log_event(event: CallEvent) -> None:
    """Tell an event to the logger ``agentic.events``: one INFO record, its fields as the record's ``extra``."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s %s", event.name, event.tool_name, extra={"event_name": str(event.name), **event.fields()})
