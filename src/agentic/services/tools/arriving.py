"""Tools that arrive are known to the database before a process has them. Who is about to need some has the process look first."""

from collections.abc import Iterable
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

    def warm(self, organization_id: UUID, *, run_id: UUID, tools: Iterable[str]) -> None:
        """Have the servers of these tools opened while the model thinks, so that a call finds them open.

        Nobody waits for it and nothing rests on it: one that cannot be opened says so to the call that needs it.
        """
        ...


class NothingArrives:
    """A deployment without remote servers."""

    async def refresh(self, organization_id: UUID) -> None:
        """Nothing changes."""
        del organization_id

    def warm(self, organization_id: UUID, *, run_id: UUID, tools: Iterable[str]) -> None:
        """There is nothing to open."""
        del organization_id, run_id, tools
