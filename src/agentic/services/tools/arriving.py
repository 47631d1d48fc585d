"""Tools that arrive are known to the database before a process has them. Who is about to need some has the process look first."""

from typing import Protocol
from uuid import UUID


class Arrivals(Protocol):
    """Brings the registry to what the database knows of an organization's remote tools."""

    async def refresh(self, organization_id: UUID) -> None:
        """Register what is new or another, and take away what left. Cheap when nothing changed: one statement.

        No server is talked to.

        Raises:
            StorageUnavailable: the database does not answer, so nobody can say which tools there are.
        """
        ...


class NothingArrives:
    """A deployment without remote servers."""

    async def refresh(self, organization_id: UUID) -> None:
        """Nothing changes."""
        del organization_id
