"""Reads artifacts for people, and removes them with the runs they belong to."""

import hashlib
from uuid import UUID

from agentic.contract.errors import NotFound, ProgramFault
from agentic.services.artifacts.models import Kept
from agentic.services.artifacts.ports import ArtifactBodies, ArtifactRows

RETENTION_S = 395 * 24 * 3600.0
"""As long as runs are kept: thirteen months."""


class Artifacts:
    """What the API and the sweeps ask.

    Args:
        rows: the rows.
        in_rows: bytes that stand in the rows.
        elsewhere: bytes that stand in an object store; ``None`` when the deployment has none.
    """

    def __init__(self, *, rows: ArtifactRows, in_rows: ArtifactBodies, elsewhere: ArtifactBodies | None = None) -> None:
        self._rows = rows
        self._in_rows = in_rows
        self._elsewhere = elsewhere

    async def read(self, organization_id: UUID, artifact_id: UUID) -> Kept:
        """An artifact of this organization with its bytes.

        Raises:
            NotFound: there is none here, or its bytes are gone; somebody else's looks the same (T1).
            BodiesUnavailable: the object store does not answer now.
            ProgramFault: the bytes are not those that were kept, or stand in a store this deployment does not name.
        """
        artifact = await self._rows.read(organization_id, artifact_id)
        if artifact is None:
            raise _missing(artifact_id)
        bodies = self._in_rows if artifact.place is None else self._elsewhere
        if bodies is None:
            raise ProgramFault(
                f"artifact {artifact_id} stands in an object store, and none is set; open the platform with it"
            )
        body = await bodies.get(artifact)
        if body is None:
            raise _missing(artifact_id)
        if hashlib.sha256(body).hexdigest() != artifact.sha256:
            raise ProgramFault(f"the bytes of artifact {artifact_id} are not those that were kept")
        return Kept(artifact=artifact, body=body)

    async def sweep(self, *, older_than_s: float = RETENTION_S, limit: int = 100) -> int:
        """Remove the artifacts of ended runs whose time is over; how many. Safe at any time, twice at once too.

        The bytes go before the rows: a death in between leaves rows, by which the next sweep finds the run again.

        Raises:
            BodiesUnavailable: the object store failed; what is left goes with the next sweep.
        """
        removed = 0
        for organization_id, run_id in await self._rows.outlived(older_than_s=older_than_s, limit=limit):
            if self._elsewhere is not None:
                await self._elsewhere.forget_run(organization_id, run_id)
            removed += await self._rows.forget_run(organization_id, run_id)
        return removed


def _missing(artifact_id: UUID) -> NotFound:
    return NotFound(f"there is no artifact {artifact_id} here")
