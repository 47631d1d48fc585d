"""Brings the bytes of artifacts to an object store, and into the row when that store fails (J4)."""

import asyncio
import logging
from dataclasses import dataclass
from uuid import UUID

from agentic.services.artifacts.ports import ArtifactBodies, BodiesUnavailable
from agentic.services.tools.records import ArtifactRecord

KEEP_TIMEOUT_S = 5.0
"""For one artifact. The call's claim is held meanwhile, and outlives its deadline by thirty seconds."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ElsewhereOrInTheRow:
    """Implements the invoker's ``ArtifactKeeper``.

    If the process dies after the upload and before the commit, an object remains that no row names; it goes with its run.
    """

    bodies: ArtifactBodies
    timeout_s: float = KEEP_TIMEOUT_S

    async def keep(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        """Return the record with its place, or as it was when the store did not take the bytes in time."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self.bodies.put(record, organization_id=organization_id, run_id=run_id)
        except (BodiesUnavailable, TimeoutError) as error:
            why = str(error) or f"no answer within {self.timeout_s:g} s"
        except Exception as error:  # an adapter's fault costs no finished effect
            why = type(error).__name__
        _log.warning("artifact %s is kept in its row, because the object store failed: %s", record.id, why)
        return record
