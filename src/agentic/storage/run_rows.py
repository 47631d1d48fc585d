"""What the statements of runs answer: their rows as values. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from agentic.contract.errors import NotFound
from agentic.contract.json_types import JsonObject
from agentic.contract.trust import Trust
from agentic.services.runs.models import (
    Counters,
    EarlierRun,
    Lease,
    LedRun,
    Proposal,
    ProposedCall,
    RunMessage,
    Spending,
    Unpriced,
)

Row = Mapping[str, Any]


def led_run(
    row: Row, segment_id: UUID, *, definition: JsonObject, breakers: JsonObject, provider_failures: int
) -> LedRun:
    """A run as whoever took its lease leads it.

    Args:
        row: what the taking statement returned.
        segment_id: the span of the segment.
        definition: the frozen definition.
        breakers: how often calls repeated so far.
        provider_failures: segments in a row that ended because the model's provider was down.
    """
    return LedRun(
        lease=Lease(
            organization_id=row["organization_id"], run_id=row["id"], fence=row["fence"], wake_seq=row["wake_seq"]
        ),
        user_id=row["user_id"],
        root_run_id=row["root_run_id"],
        lane=row["lane"],
        definition_name=row["definition_name"],
        definition=definition,
        tools=row["tools"],
        ceilings=row["ceilings"],
        context_trust=Trust(row["context_trust"]),
        breakers=breakers,
        attempts_without_progress=row["attempts_without_progress"],
        provider_failures=provider_failures,
        cancelled=row["cancelled"],
        overdue=row["overdue"],
        segment_id=segment_id,
        leased_at=row["leased_at"],
        tree=_spending(row, "tree", row["max_cost"]),
        day=_spending(row, "day", row["per_day"]),
        unpriced=unpriced(row),
    )


def message(row: Row) -> RunMessage:
    """One message of a run's log."""
    return RunMessage(id=row["message_id"], role=row["role"], body=row["body"], trust=Trust(row["trust"]))


def proposal(row: Row) -> Proposal:
    """One call of a stored pause."""
    call = ProposedCall(
        ordinal=row["ordinal"],
        model_call_id=row["model_call_id"],
        model_name=row["model_name"],
        tool=row["tool"],
        arguments_text=row["arguments_text"],
        fault=row["fault"],
    )
    return Proposal(id=row["id"], turn=row["turn"], call=call)


def counters(row: Row) -> Counters:
    """What an append answers."""
    return Counters(
        model_requests=row["model_requests"],
        tool_calls=row["tool_calls"],
        active_ms=row["active_ms"],
        context_trust=Trust(row["context_trust"]),
        cancelled=row["cancelled"],
        tree=_spending(row, "tree", row["max_cost"]),
        unpriced=unpriced(row),
    )


def earlier_run(row: Row) -> EarlierRun:
    """What an ended run of a session said."""
    return EarlierRun(
        run_id=row["id"],
        words=RunMessage(id=row["message_id"], role="user", body=row["body"], trust=Trust(row["trust"])),
        format=row["format"],
        answer=row["answer"],
        answer_trust=Trust(row["answer_trust"]),
    )


def unpriced(row: Row) -> Unpriced | None:
    """The model request that no price covers, where money is bounded and there is one."""
    return None if row["unpriced"] is None else Unpriced(**row["unpriced"])


def no_run(run_id: UUID) -> NotFound:
    """What is raised where no row is: of another organization, or of none."""
    return NotFound(f"there is no run {run_id} in this organization; 'agentic runs list' shows those there are")


def _spending(row: Row, whose: str, limit: Decimal | None) -> Spending | None:
    return None if limit is None else Spending(spent=row[f"{whose}_spent"], held=row[f"{whose}_held"], limit=limit)
