"""Runs in Postgres. The statements stand in ``queries/runs.sql``; a park is four of them in one implicit transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.errors import Conflict, NotFound, ParentRefuses, RunEnded
from agentic.contract.events import EventName
from agentic.contract.trust import Trust
from agentic.services.runs.models import (
    Append,
    Counters,
    EarlierRun,
    Lease,
    LedRun,
    Moved,
    NewRun,
    Parent,
    Place,
    Proposal,
    ProposedCall,
    Renewed,
    RunEnd,
    RunMessage,
    RunPage,
    RunQuery,
    RunTree,
    SessionSoFar,
    Spending,
    Started,
    Unpriced,
)
from agentic.services.tools.contracts import read_contract
from agentic.services.tools.domains import belongs_to_organization
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.records import JobWait
from agentic.storage.artifact_columns import artifact_columns
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, record, text
from agentic.storage.event_store import event_column
from agentic.storage.queries import load_queries

_TREE_APPROVALS = 1000
_FAMILY = 1000


class PostgresRunStore:
    """Implements ``RunStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("runs")
        self._approvals = load_queries("approvals")
        self._journal = load_queries("journal")
        self._audit = load_queries("audit")

    async def start(self, run: NewRun) -> Started:
        event = uuid4()
        params = _start_params(run, event)
        if run.parent_run_id is None:
            row = await self._db.one(self._sql["start"], params)
        else:
            _, row = await self._db.atomic([(self._sql["lock_family"], params), (self._sql["start"], params)])
        if row is not None:
            return Started(run_id=row["id"], created=True, nudge=event)
        earlier = await self.find(run.organization_id, run.request_key, request_digest=run.request_digest)
        if earlier is None:
            raise ParentRefuses(run_id=run.parent_run_id, code=await self._why_no_child(run))
        return Started(run_id=earlier, created=False, nudge=None)

    async def _why_no_child(self, run: NewRun) -> Literal["parent_cancelled", "parent_over"]:
        assert run.parent_run_id is not None  # a start without a parent inserts, or finds its key
        parent = await self.parent(run.organization_id, run.parent_run_id)
        return "parent_cancelled" if parent.cancelled else "parent_over"

    async def find(self, organization_id: UUID, request_key: str, *, request_digest: str) -> UUID | None:
        key = {"organization_id": organization_id, "request_key": request_key}
        earlier = await self._db.one(self._sql["find_by_request"], key)
        if earlier is None:
            return None
        if earlier["request_digest"] != request_digest:
            raise Conflict(
                f"the request key {request_key!r} was used for another input; use a new key for a new request"
            )
        return UUID(str(earlier["id"]))

    async def parent(self, organization_id: UUID, run_id: UUID) -> Parent:
        row = await self._db.one(self._sql["parent"], {"organization_id": organization_id, "run_id": run_id})
        if row is None:
            raise _no_run(run_id)
        return Parent(
            run_id=row["id"],
            user_id=row["user_id"],
            depth=row["depth"],
            tools=frozenset(row["tools"]),
            state=row["state"],
            cancelled=row["cancelled"],
            overdue=row["overdue"],
        )

    async def session(
        self, organization_id: UUID, session_id: str, *, user_id: UUID | None, limit: int
    ) -> SessionSoFar:
        params = {"organization_id": organization_id, "session_id": session_id, "user_id": user_id, "limit": limit}
        newest = await self._db.all(self._sql["session"], params)
        uncertain = await self._db.all(self._sql["session_uncertain"], params)
        return SessionSoFar(
            newest=[_earlier(row) for row in newest],
            answered=newest[0]["answered"] if newest else 0,
            uncertain=[row["tool"] for row in uncertain],
        )

    async def take(self, organization_id: UUID, run_id: UUID, *, lease_s: float) -> LedRun | None:
        segment_id = uuid4()
        params = {"organization_id": organization_id, "run_id": run_id, "lease_s": lease_s, "segment_id": segment_id}
        row = await self._db.one(self._sql["take"], params)
        return None if row is None else _led(row, segment_id)

    async def renew(self, lease: Lease, *, lease_s: float) -> Renewed | None:
        row = await self._db.one(self._sql["renew"], {**_fence(lease), "lease_s": lease_s})
        return None if row is None else Renewed(cancelled=row["cancelled"])

    async def contracts(self, hashes: Sequence[str]) -> Mapping[str, ToolSpec]:
        rows = await self._db.all(self._sql["contracts"], {"hashes": list(hashes)})
        return {
            row["contract_hash"]: read_contract(
                contract_hash=row["contract_hash"], name=row["name"], version=row["version"], text=row["spec"]
            )
            for row in rows
        }

    async def messages(self, lease: Lease, *, format: str) -> list[RunMessage]:
        rows = await self._db.all(self._sql["messages"], _fence(lease))
        for row in rows:
            if row["format"] != format:
                raise RunEnded(
                    status="failed",
                    code="history_unreadable",
                    message=f"message {row['message_id']} of the run is of the format {row['format']}, and this deployment reads "
                    f"{format}; start the work again in a new run",
                )
        return [
            RunMessage(id=row["message_id"], role=row["role"], body=row["body"], trust=Trust(row["trust"]))
            for row in rows
        ]

    async def words(self, organization_id: UUID, run_id: UUID) -> list[RunMessage]:
        """What the user wrote and what calls returned, in order: the run's log without the model's own messages."""
        rows = await self._db.all(self._sql["words"], {"organization_id": organization_id, "run_id": run_id})
        return [
            RunMessage(id=row["message_id"], role=row["role"], body=row["body"], trust=Trust(row["trust"]))
            for row in rows
        ]

    async def proposals(self, lease: Lease) -> list[Proposal]:
        return [_proposal(row) for row in await self._db.all(self._sql["proposals"], _fence(lease))]

    async def append(self, lease: Lease, append: Append) -> Counters | None:
        row = await self._db.one(self._sql["append"], _append_params(lease, append))
        return None if row is None else _counters(row)

    async def park(
        self, lease: Lease, append: Append, questions: Sequence[ApprovalRequest], *, expires_s: float
    ) -> Moved | None:
        asked = [
            {
                **question.model_dump(mode="json", exclude={"organization_id", "run_id"}),
                "ordinal": ordinal,
            }
            for ordinal, question in enumerate(questions)
        ]
        params = {**_fence(lease), "questions": jsonb(asked), "expires_s": expires_s}
        between: list[tuple[LiteralString, Mapping[str, Any]]] = [
            (self._sql["clear_waits"], params),
            (self._sql["file_approvals"], params),
        ]
        return await self._move("park", lease, append, {"questions": params["questions"]}, between=between)

    async def park_on_job(self, lease: Lease, append: Append, waits: JobWait) -> Moved | None:
        params = {"job_id": waits.job_id, "within_s": waits.within_s}
        between: list[tuple[LiteralString, Mapping[str, Any]]] = [
            (self._sql["clear_waits"], _fence(lease)),
            (self._sql["lock_job"], {**_fence(lease), **params}),
        ]
        return await self._move("park_on_job", lease, append, params, between=between)

    async def release(
        self,
        lease: Lease,
        append: Append,
        *,
        due_at: datetime | None = None,
        due_in_s: float | None = None,
        orderly: bool,
        provider_failures: int = 0,
    ) -> Moved | None:
        params = {"due_at": due_at, "due_in_s": due_in_s, "orderly": orderly, "provider_failures": provider_failures}
        return await self._move("release", lease, append, params)

    async def finish(self, lease: Lease, append: Append, end: RunEnd) -> Moved | Unpriced | None:
        params = {
            "state": end.state,
            "answer": text(end.answer),
            "partial_reason": text(end.partial_reason),
            "error_code": end.error_code,
        }
        row = (await self._written("finish", lease, append, params, uuid4()))[-1]
        if row is None or row["unpriced"] is None:
            return Moved() if row is not None and row["moved"] else None
        return _unpriced(row)

    async def cancel(
        self, organization_id: UUID, run_id: UUID, *, user_id: UUID | None, reason: str | None = None
    ) -> Sequence[UUID]:
        params = {
            "organization_id": organization_id,
            "run_id": run_id,
            "user_id": user_id,
            "reason": text(reason),
            "event_name": str(EventName.RUN_NUDGED),
        }
        asked = await self._db.atomic([(self._sql["cancel"], params), (self._sql["cancel_family"], params)])
        return [nudge for row in asked if row is not None for nudge in row["nudges"]]

    async def nudge_due(self, *, quiet_s: float, limit: int) -> list[UUID]:
        params = {"quiet_s": quiet_s, "limit": limit, "event_name": str(EventName.RUN_NUDGED)}
        return [row["id"] for row in await self._db.all(self._sql["nudge_due"], params)]

    async def ensure_partitions(self) -> None:
        """Keep room for the spans of this month and the next."""
        await self._db.one(self._sql["ensure_partitions"], {})

    async def tree(self, organization_id: UUID, run_id: UUID) -> RunTree:
        key = {"organization_id": organization_id, "run_id": run_id}
        run = await self.row(organization_id, run_id)
        listed = {**key, "status": None, "limit": _TREE_APPROVALS}
        return RunTree(
            run=run,
            spans=await self._db.all(self._sql["spans"], key),
            decisions=await self._db.all(self._sql["decisions"], key),
            approvals=await self._db.all(self._approvals["list"], listed),
            effects=await self._db.all(self._sql["effects"], key),
            uncertain=await self._db.all(self._journal["list_uncertain"], key),
            cost=await self._db.one(self._sql["cost"], key) or {},
            waits=await self._db.all(self._audit["waits"], key),
            artifacts=await self._db.all(self._audit["artifacts"], key),
            family=await self._db.all(self._sql["family"], {**key, "limit": _FAMILY}),
        )

    async def row(self, organization_id: UUID, run_id: UUID) -> Mapping[str, Any]:
        row = await self._db.one(self._sql["show"], {"organization_id": organization_id, "run_id": run_id})
        if row is None:
            raise _no_run(run_id)
        return row

    async def page(self, organization_id: UUID, query: RunQuery, *, limit: int, behind: Place | None = None) -> RunPage:
        params = {
            **record(query),
            "organization_id": organization_id,
            "states": None if query.states is None else [*query.states],
            "behind_at": None if behind is None else behind.created_at,
            "behind_id": None if behind is None else behind.run_id,
            "limit": limit + 1,
        }
        rows = await self._db.all(self._sql["list"], params)
        shown = rows[:limit]
        more = len(rows) > limit
        return RunPage(
            rows=shown,
            behind=Place(created_at=shown[-1]["created_at"], run_id=shown[-1]["id"]) if more else None,
        )

    async def _move(
        self,
        name: str,
        lease: Lease,
        append: Append,
        params: Mapping[str, Any],
        *,
        between: Sequence[tuple[LiteralString, Mapping[str, Any]]] = (),
    ) -> Moved | None:
        event = uuid4()
        moved = (await self._written(name, lease, append, params, event, between=between))[-1]
        if moved is None or not moved["moved"]:
            return None
        return Moved(nudge=event if moved["nudged"] else None, due_at=moved.get("due_at"))

    async def _written(
        self,
        name: str,
        lease: Lease,
        append: Append,
        params: Mapping[str, Any],
        event: UUID,
        *,
        between: Sequence[tuple[LiteralString, Mapping[str, Any]]] = (),
    ) -> list[Any]:
        """An append and a transition in one transaction; the first row of each statement."""
        last = (self._sql[name], {**_fence(lease), **params, **_event(event)})
        return await self._db.atomic([(self._sql["append"], _append_params(lease, append)), *between, last])


def _no_run(run_id: UUID) -> NotFound:
    return NotFound(f"there is no run {run_id} in this organization; 'agentic runs list' shows those there are")


def _earlier(row: Mapping[str, Any]) -> EarlierRun:
    return EarlierRun(
        run_id=row["id"],
        words=RunMessage(id=row["message_id"], role="user", body=row["body"], trust=Trust(row["trust"])),
        format=row["format"],
        answer=row["answer"],
        answer_trust=Trust(row["answer_trust"]),
    )


def _fence(lease: Lease) -> dict[str, Any]:
    return {
        "organization_id": lease.organization_id,
        "run_id": lease.run_id,
        "fence": lease.fence,
        "wake_seq": lease.wake_seq,
    }


def _event(event: UUID) -> dict[str, Any]:
    return {"event_id": event, "event_name": str(EventName.RUN_NUDGED)}


def _start_params(run: NewRun, event: UUID) -> dict[str, Any]:
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
        "contracts": jsonb(
            [
                {
                    "contract_hash": spec.contract_hash,
                    "organization_id": str(run.organization_id) if belongs_to_organization(spec.name) else None,
                    "name": spec.name,
                    "version": spec.version,
                    "spec": spec.contract_text(),
                }
                for spec in run.contracts
            ]
        ),
        **_message_columns(log),
        "format": run.format,
        "event_id": event,
        "event_name": str(EventName.RUN_REQUESTED),
    }


def _message_columns(messages: Sequence[RunMessage]) -> dict[str, Any]:
    return {
        "message_ids": [text(message.id) for message in messages],
        "message_roles": [message.role for message in messages],
        "message_bodies": [message.body for message in messages],
        "message_trusts": [str(message.trust) for message in messages],
    }


def _append_params(lease: Lease, append: Append) -> dict[str, Any]:
    trail = append.trail
    lowest = min((message.trust for message in append.messages), key=lambda trust: trust.rank, default=Trust.PLATFORM)
    return {
        **_fence(lease),
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


def _led(row: Mapping[str, Any], segment_id: UUID) -> LedRun:
    return LedRun(
        lease=Lease(
            organization_id=row["organization_id"], run_id=row["id"], fence=row["fence"], wake_seq=row["wake_seq"]
        ),
        user_id=row["user_id"],
        root_run_id=row["root_run_id"],
        lane=row["lane"],
        definition_name=row["definition_name"],
        definition=row["definition"],
        tools=row["tools"],
        ceilings=row["ceilings"],
        context_trust=Trust(row["context_trust"]),
        breakers=row["breakers"],
        attempts_without_progress=row["attempts_without_progress"],
        provider_failures=row["provider_failures"],
        cancelled=row["cancelled"],
        overdue=row["overdue"],
        segment_id=segment_id,
        leased_at=row["leased_at"],
        tree=_spending(row, "tree", row["max_cost"]),
        day=_spending(row, "day", row["per_day"]),
        unpriced=_unpriced(row),
    )


def _proposal(row: Mapping[str, Any]) -> Proposal:
    call = ProposedCall(
        ordinal=row["ordinal"],
        model_call_id=row["model_call_id"],
        model_name=row["model_name"],
        tool=row["tool"],
        arguments_text=row["arguments_text"],
        fault=row["fault"],
    )
    return Proposal(id=row["id"], turn=row["turn"], call=call)


def _counters(row: Mapping[str, Any]) -> Counters:
    return Counters(
        model_requests=row["model_requests"],
        tool_calls=row["tool_calls"],
        active_ms=row["active_ms"],
        context_trust=Trust(row["context_trust"]),
        cancelled=row["cancelled"],
        tree=_spending(row, "tree", row["max_cost"]),
        unpriced=_unpriced(row),
    )


def _spending(row: Mapping[str, Any], whose: str, limit: Decimal | None) -> Spending | None:
    return None if limit is None else Spending(spent=row[f"{whose}_spent"], held=row[f"{whose}_held"], limit=limit)


def _unpriced(row: Mapping[str, Any]) -> Unpriced | None:
    return None if row["unpriced"] is None else Unpriced(**row["unpriced"])
