"""Runs in Postgres. The statements stand in ``queries/runs.sql``; a park is four of them in one implicit transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.errors import Conflict, ParentRefuses, RunEnded
from agentic.contract.events import EventName
from agentic.services.runs.models import (
    Append,
    Counters,
    Lease,
    LedRun,
    Moved,
    NewRun,
    Parent,
    Place,
    Proposal,
    Renewed,
    RunEnd,
    RunMessage,
    RunPage,
    RunQuery,
    RunTree,
    SessionSoFar,
    Started,
    Unpriced,
)
from agentic.services.tools.contracts import read_contract
from agentic.services.tools.models import ToolSpec
from agentic.services.tools.records import JobWait
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, record, text
from agentic.storage.queries import load_queries
from agentic.storage.run_columns import append_params, fence_params, nudge_params, start_params
from agentic.storage.run_rows import counters, earlier_run, led_run, message, no_run, proposal, unpriced

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
        params = start_params(run, event)
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
            raise no_run(run_id)
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
            newest=[earlier_run(row) for row in newest],
            answered=newest[0]["answered"] if newest else 0,
            uncertain=[row["tool"] for row in uncertain],
        )

    async def take(self, organization_id: UUID, run_id: UUID, *, lease_s: float) -> LedRun | None:
        segment_id = uuid4()
        params = {"organization_id": organization_id, "run_id": run_id, "lease_s": lease_s, "segment_id": segment_id}
        row = await self._db.one(self._sql["take"], params)
        if row is None:
            return None
        return led_run(
            row,
            segment_id,
            definition=row["definition"],
            breakers=row["breakers"],
            provider_failures=row["provider_failures"],
        )

    async def renew(self, lease: Lease, *, lease_s: float) -> Renewed | None:
        row = await self._db.one(self._sql["renew"], {**fence_params(lease), "lease_s": lease_s})
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
        rows = await self._db.all(self._sql["messages"], fence_params(lease))
        for row in rows:
            if row["format"] != format:
                raise RunEnded(
                    status="failed",
                    code="history_unreadable",
                    message=f"message {row['message_id']} of the run is of the format {row['format']}, and this deployment reads "
                    f"{format}; start the work again in a new run",
                )
        return [message(row) for row in rows]

    async def words(self, organization_id: UUID, run_id: UUID) -> list[RunMessage]:
        """What the user wrote and what calls returned, in order: the run's log without the model's own messages."""
        rows = await self._db.all(self._sql["words"], {"organization_id": organization_id, "run_id": run_id})
        return [message(row) for row in rows]

    async def proposals(self, lease: Lease) -> list[Proposal]:
        return [proposal(row) for row in await self._db.all(self._sql["proposals"], fence_params(lease))]

    async def append(self, lease: Lease, append: Append) -> Counters | None:
        row = await self._db.one(self._sql["append"], append_params(lease, append))
        return None if row is None else counters(row)

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
        params = {**fence_params(lease), "questions": jsonb(asked), "expires_s": expires_s}
        between: list[tuple[LiteralString, Mapping[str, Any]]] = [
            (self._sql["clear_waits"], params),
            (self._sql["file_approvals"], params),
        ]
        return await self._move("park", lease, append, {"questions": params["questions"]}, between=between)

    async def park_on_job(self, lease: Lease, append: Append, waits: JobWait) -> Moved | None:
        params = {"job_id": waits.job_id, "within_s": waits.within_s}
        between: list[tuple[LiteralString, Mapping[str, Any]]] = [
            (self._sql["clear_waits"], fence_params(lease)),
            (self._sql["lock_job"], {**fence_params(lease), **params}),
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
        return unpriced(row)

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
            raise no_run(run_id)
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
        last = (self._sql[name], {**fence_params(lease), **params, **nudge_params(event)})
        return await self._db.atomic([(self._sql["append"], append_params(lease, append)), *between, last])
