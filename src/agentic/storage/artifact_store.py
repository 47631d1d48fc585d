"""Artifacts in Postgres: their rows, and the bytes of those that stand in the rows."""

from collections.abc import Sequence
from uuid import UUID

from agentic.services.artifacts.models import Artifact
from agentic.services.tools.records import ArtifactRecord
from agentic.storage.database import Database
from agentic.storage.queries import load_queries


class PostgresArtifactRows:
    """Implements ``ArtifactRows``. The statements that end a call or append to a run write them."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("artifacts")

    async def read(self, organization_id: UUID, artifact_id: UUID) -> Artifact | None:
        row = await self._db.one(self._sql["read"], {"organization_id": organization_id, "id": artifact_id})
        return None if row is None else Artifact.model_validate(row)

    async def outlived(self, *, older_than_s: float, limit: int) -> Sequence[tuple[UUID, UUID]]:
        rows = await self._db.all(self._sql["outlived"], {"older_than_s": older_than_s, "limit": limit})
        return [(row["organization_id"], row["run_id"]) for row in rows]

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> int:
        return await self._db.count(self._sql["forget_run"], {"organization_id": organization_id, "run_id": run_id})


class PostgresBodies:
    """Implements ``ArtifactBodies``: the commit that writes the row writes the bytes, and they go with it."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("artifacts")

    async def put(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        return record

    async def get(self, artifact: Artifact) -> bytes | None:
        params = {"organization_id": artifact.organization_id, "id": artifact.id}
        row = await self._db.one(self._sql["body"], params)
        return None if row is None else bytes(row["body"])

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        return
