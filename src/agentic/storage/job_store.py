"""Provider jobs in Postgres. The statements stand in ``queries/jobs.sql``."""

import hashlib
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from agentic.contract.deliveries import DropReason
from agentic.contract.errors import ClaimLost, NotFound
from agentic.contract.events import EventName
from agentic.services.provider_jobs.identity import job_id_of, job_usage_id
from agentic.services.provider_jobs.models import (
    Delivered,
    JobCost,
    JobMove,
    JobReport,
    JobState,
    NewJob,
    ProviderJob,
    Reserved,
    ResultMissing,
    Settlement,
    SubmittingCall,
    Which,
    job_name,
)
from agentic.storage.database import Database
from agentic.storage.drop_counts import DropCounts
from agentic.storage.encoding import jsonb, text
from agentic.storage.outbox_store import event_of
from agentic.storage.queries import load_queries

MAX_INLINE_BYTES = 32 * 1024
"""A larger report is kept beside the job's row, under its digest."""


class PostgresJobStore:
    """Implements ``JobStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("jobs")
        self._deliveries = load_queries("webhooks")
        self._drops = DropCounts(database)

    async def submit(self, job: NewJob) -> bool:
        params = {
            "id": job.id,
            "organization_id": job.organization_id,
            "run_id": job.run_id,
            "tool_call_id": job.tool_call_id,
            "provider": job.provider,
            "contact_refs": None if job.contact_refs is None else jsonb(list(job.contact_refs)),
        }
        if await self._db.one(self._sql["submit"], params) is not None:
            return True
        if await self.read(job.organization_id, job.id) is None:
            raise NotFound(f"run {job.run_id} does not exist in this organization, so it submits no job")
        return False

    async def bind(self, organization_id: UUID, job_id: UUID, provider_job_id: str) -> bool:
        params = {**_key(organization_id, job_id), "provider_job_id": text(provider_job_id)}
        return await self._db.count(self._sql["bind"], params) == 1

    async def keep_result(self, organization_id: UUID, job_id: UUID, *, digest: str, body: str) -> None:
        params = {**_key(organization_id, job_id), "digest": digest, "body": text(body)}
        await self._db.count(self._sql["keep_result"], params)

    async def move(self, organization_id: UUID, job_id: UUID, move: JobMove) -> UUID | None:
        event = uuid4()
        params = {
            **_key(organization_id, job_id),
            "state": str(move.state),
            "terminal": move.state.terminal,
            "result": None if move.result is None else jsonb(move.result),
            "result_digest": move.result_digest,
            "cost": None if move.cost is None else jsonb(dict(move.cost)),
            "event_id": event,
            "event_name": str(EventName.PROVIDER_JOB_COMPLETED),
        }
        row = await self._db.one(self._sql["move"], params)
        return event if row is not None and row["moved"] and move.state.terminal else None

    async def read(self, organization_id: UUID, job_id: UUID) -> ProviderJob | None:
        row = await self._db.one(self._sql["read"], _key(organization_id, job_id))
        return None if row is None else _job(row)

    async def reserve(
        self, call: SubmittingCall, *, provider: str, contact_refs: Sequence[str] | None = None
    ) -> Reserved:
        claim = {
            "organization_id": call.organization_id,
            "run_id": call.run_id,
            "tool": call.tool,
            "epoch": call.epoch,
        }
        job_id = await self._job_id(call, claim)
        if job_id is None:
            raise ClaimLost(f"{call.tool}: a later worker owns this call; no job was reserved")
        params = {
            **claim,
            "id": job_id,
            "attempt": call.attempt,
            "provider": provider,
            "contact_refs": None if contact_refs is None else jsonb(list(contact_refs)),
        }
        row = await self._db.one(self._sql["reserve"], params)
        job = await self.read(call.organization_id, job_id)
        if row is None or not row["live"] or job is None:
            raise ClaimLost(f"{call.tool}: a later worker owns this call; no job was reserved")
        return Reserved(job=job, first=bool(row["first"]))

    async def submitted_by(self, call: SubmittingCall) -> ProviderJob | None:
        claim = {
            "organization_id": call.organization_id,
            "run_id": call.run_id,
            "tool": call.tool,
            "epoch": call.epoch,
        }
        job_id = await self._job_id(call, claim)
        return None if job_id is None else await self.read(call.organization_id, job_id)

    async def note(self, organization_id: UUID, job_id: UUID, note: str) -> None:
        await self._db.count(self._sql["note"], {**_key(organization_id, job_id), "note": text(note)})

    async def result_of(self, job: ProviderJob) -> Any:
        if job.result_digest is None:
            return job.result
        row = await self._db.one(
            self._sql["result_body"], {**_key(job.organization_id, job.id), "digest": job.result_digest}
        )
        if row is None:
            raise ResultMissing(
                f"the result {job.result_digest} of job {job.id} is not stored; restore it from a backup"
            )
        return json.loads(row["body"])

    async def deliver(self, provider: str, job_id: UUID, report: JobReport, *, body_hash: str) -> Delivered:
        body = json.dumps(report.result, sort_keys=True, separators=(",", ":"))
        large = len(body) > MAX_INLINE_BYTES
        params = {
            "provider": provider,
            "id": job_id,
            "provider_job_id": text(report.provider_job_id),
            "names_it": report.name == job_name(job_id),
            "state": str(report.state),
            "terminal": report.state.terminal,
            "result": None if large else jsonb(report.result),
            "result_digest": hashlib.sha256(body.encode()).hexdigest() if large else None,
            "body": body if large else None,
            "cost": None if report.cost is None else jsonb(report.cost.stored()),
            "delivery_id": text(report.delivery_id),
            "body_hash": body_hash,
            "event_id": uuid4(),
            "event_name": str(EventName.PROVIDER_JOB_COMPLETED),
            "wake_name": str(EventName.RUN_NUDGED),
        }
        row = await self._db.one(self._sql["deliver"], params)
        assert row is not None
        dropped = row["dropped"]
        return Delivered(
            dropped=None if dropped is None else DropReason(dropped), events=tuple(map(event_of, row["events"]))
        )

    async def count_drop(self, provider: str, reason: DropReason) -> None:
        await self._drops.add(provider, reason)

    async def drops(self, *, limit: int) -> list[dict[str, Any]]:
        return await self._db.all(self._deliveries["drops"], {"limit": limit})

    async def settle(self, organization_id: UUID, job_id: UUID) -> Settlement:
        params = {**_key(organization_id, job_id), "usage_id": job_usage_id(job_id)}
        row = await self._db.one(self._sql["settle"], params)
        if row is None:
            return Settlement.NOTHING_TO_DO
        return Settlement.SETTLED if row["settled"] else Settlement.UNCOUNTABLE

    async def settle_failed(self, organization_id: UUID, job_id: UUID) -> bool:
        return await self._db.count(self._sql["settle_failed"], _key(organization_id, job_id)) == 1

    async def nudge_unsettled(self, *, quiet_s: float, limit: int) -> list[UUID]:
        params = {"quiet_s": quiet_s, "limit": limit, "event_name": str(EventName.PROVIDER_JOB_COMPLETED)}
        return [row["id"] for row in await self._db.all(self._sql["nudge_unsettled"], params)]

    async def take_silent(
        self, provider: str, *, window_s: float, again_s: float, limit: int, only: tuple[UUID, UUID] | None = None
    ) -> list[ProviderJob]:
        params = {
            "provider": provider,
            "window_s": window_s,
            "again_s": again_s,
            "limit": limit,
            "organization_id": None if only is None else only[0],
            "id": None if only is None else only[1],
        }
        taken = await self._db.all(self._sql["take_silent"], params)
        found = [await self.read(row["organization_id"], row["id"]) for row in taken]
        return sorted((job for job in found if job is not None), key=lambda job: job.submitted_at)

    async def become_unknown(self, provider: str, *, window_s: float) -> list[UUID]:
        rows = await self._db.all(self._sql["become_unknown"], {"provider": provider, "window_s": window_s})
        return [row["id"] for row in rows]

    async def find(self, organization_id: UUID, *, which: Which, limit: int) -> list[ProviderJob]:
        params = {"organization_id": organization_id, "which": which, "limit": limit}
        return [_job(row) for row in await self._db.all(self._sql["list"], params)]

    async def resolve_refused(
        self, organization_id: UUID, job_id: UUID, *, user_id: UUID, evidence: str
    ) -> UUID | None:
        event = uuid4()
        params = {
            **_key(organization_id, job_id),
            "user_id": user_id,
            "evidence": text(evidence),
            "cost": jsonb(JobCost(quantity=Decimal(0), unit="job").stored()),
            "event_id": event,
            "event_name": str(EventName.PROVIDER_JOB_COMPLETED),
        }
        return event if await self._db.one(self._sql["resolve_refused"], params) is not None else None

    async def resolve_bound(
        self, organization_id: UUID, job_id: UUID, *, provider_job_id: str, user_id: UUID, evidence: str
    ) -> bool:
        params = {
            **_key(organization_id, job_id),
            "provider_job_id": text(provider_job_id),
            "user_id": user_id,
            "evidence": text(evidence),
        }
        return await self._db.one(self._sql["resolve_bound"], params) is not None

    async def _job_id(self, call: SubmittingCall, claim: dict[str, Any]) -> UUID | None:
        row = await self._db.one(self._sql["claim_of"], claim)
        return None if row is None else job_id_of(call.organization_id, call.tool, row["key"])


def _job(row: dict[str, Any]) -> ProviderJob:
    return ProviderJob(**{**row, "state": JobState(row["state"])})


def _key(organization_id: UUID, job_id: UUID) -> dict[str, UUID]:
    return {"organization_id": organization_id, "id": job_id}
