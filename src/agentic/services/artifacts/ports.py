"""What keeping artifacts needs: their rows, and somewhere for the bytes."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import RetryLater
from agentic.services.artifacts.models import Artifact
from agentic.services.tools.records import ArtifactRecord


class BodiesUnavailable(RetryLater):
    """The place of the bytes did not do what it was asked; nothing of the request is in the message."""


class ArtifactBodies(Protocol):
    """Where bytes are kept. One conformance suite runs over every adapter."""

    async def put(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        """Keep the bytes of a record that is about to be committed, once however often it is called.

        Returns:
            The record to commit: with a place and no bytes, or as it was when the commit itself keeps them.

        Raises:
            BodiesUnavailable: they are not kept, or other bytes are already kept under this id.
        """
        ...

    async def get(self, artifact: Artifact) -> bytes | None:
        """The bytes of a committed artifact; ``None`` when they are gone.

        Raises:
            BodiesUnavailable: they cannot be had now.
        """
        ...

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        """Remove the bytes of every artifact of a run, those no row names included. Nothing to remove is no fault.

        Raises:
            BodiesUnavailable: some may remain; ask again.
        """
        ...


class ArtifactRows(Protocol):
    """The rows of artifacts."""

    async def read(self, organization_id: UUID, artifact_id: UUID) -> Artifact | None:
        """One artifact of the organization."""
        ...

    async def outlived(self, *, older_than_s: float, limit: int) -> Sequence[tuple[UUID, UUID]]:
        """Organization and id of ended runs that still have artifacts, all of them older than this, oldest first."""
        ...

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> int:
        """Delete the rows of a run that has ended; how many."""
        ...
