"""Provider jobs in Postgres. The statements stand in ``queries/jobs.sql``."""

from uuid import UUID, uuid4

from agentic.contract.errors import NotFound
from agentic.contract.events import EventName
from agentic.services.provider_jobs.models import JobMove, JobState, NewJob, ProviderJob
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, text
from agentic.storage.queries import load_queries


class PostgresJobStore:
    """Implements ``JobStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("jobs")

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
        return None if row is None else ProviderJob(**{**row, "state": JobState(row["state"])})


def _key(organization_id: UUID, job_id: UUID) -> dict[str, UUID]:
    return {"organization_id": organization_id, "id": job_id}
