"""What the statements of runs take: a run, an append and a lease as parameters. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentic.contract.events import EventName
from agentic.contract.trust import Trust
from agentic.services.runs.models import Append, Lease, NewRun, RunMessage
from agentic.services.tools.domains import belongs_to_organization
from agentic.services.tools.models import ToolSpec
from agentic.storage.artifact_columns import artifact_columns
from agentic.storage.encoding import jsonb, record, text
from agentic.storage.event_store import event_column


def start_params(run: NewRun, event: UUID) -> dict[str, Any]:
    """What ``start`` takes.

    Args:
        run: what is started.
        event: the id of the event that says so.
    """
    log = [*run.history, run.message]
    return {
        "id": run.id,
        "organization_id": run.organization_id,
        "request_key": run.request_key,
        "request_digest": run.request_digest,
        "user_id": run.user_id,
        "lane": run.lane,
        "definition_name": run.definition_name,
        "definition": jsonb(dict(run.definition)),
        "tools": jsonb([dict(tool) for tool in run.tools]),
        "ceilings": jsonb(run.ceilings.model_dump(mode="json")),
        "trust": str(min((message.trust for message in log), key=lambda trust: trust.rank)),
        "deadline_s": run.deadline_s,
        "session_id": run.session_id,
        "parent_run_id": run.parent_run_id,
        "contracts": contract_column(run.organization_id, run.contracts),
        **_message_columns(log),
        "format": run.format,
        "event_id": event,
        "event_name": str(EventName.RUN_REQUESTED),
    }


def append_params(lease: Lease, append: Append) -> dict[str, Any]:
    """What ``append`` takes."""
    trail = append.trail
    lowest = min((message.trust for message in append.messages), key=lambda trust: trust.rank, default=Trust.PLATFORM)
    return {
        **fence_params(lease),
        "format": append.format,
        "trust": str(lowest),
        "model_requests": trail.model_requests,
        "tool_calls": trail.tool_calls,
        **_message_columns(append.messages),
        "proposals": jsonb([{"id": item.id, "turn": item.turn, **record(item.call)} for item in append.proposals]),
        "answered": list(append.answered),
        "breakers": None if append.breakers is None else jsonb(dict(append.breakers)),
        "decisions": jsonb([record(item) for item in trail.decisions]),
        "spans": jsonb([record(item) for item in trail.spans]),
        "usage": jsonb([record(item) for item in trail.usage]),
        "events": event_column(lease, append),
        **artifact_columns(trail.artifacts),
    }


def fence_params(lease: Lease) -> dict[str, Any]:
    """The run and the lease of it that a write is fenced on."""
    return {
        "organization_id": lease.organization_id,
        "run_id": lease.run_id,
        "fence": lease.fence,
        "wake_seq": lease.wake_seq,
    }


def nudge_params(event: UUID) -> dict[str, Any]:
    """The nudge that a transition may leave behind."""
    return {"event_id": event, "event_name": str(EventName.RUN_NUDGED)}


def contract_column(organization_id: UUID, contracts: Sequence[ToolSpec]) -> str:
    """The frozen specs of a run; those of an organization's own tools are its own rows."""
    return jsonb([_contract(organization_id, spec) for spec in contracts])


def _contract(organization_id: UUID, spec: ToolSpec) -> Mapping[str, Any]:
    return {
        "contract_hash": spec.contract_hash,
        "organization_id": str(organization_id) if belongs_to_organization(spec.name) else None,
        "name": spec.name,
        "version": spec.version,
        "spec": spec.contract_text(),
    }


def _message_columns(messages: Sequence[RunMessage]) -> dict[str, Any]:
    return {
        "message_ids": [text(message.id) for message in messages],
        "message_roles": [message.role for message in messages],
        "message_bodies": [message.body for message in messages],
        "message_trusts": [str(message.trust) for message in messages],
    }
