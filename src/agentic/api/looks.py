"""How many servers of others are looked at at once for people who wait: the process has runs to lead beside, through the same slots."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from agentic.contract.errors import RetryLater


@dataclass(frozen=True, kw_only=True, slots=True)
class LookLimits:
    """How many looks there are at once.

    Attributes:
        at_once: of all organizations in this process; half of the slots by which it opens servers.
        of_an_organization: of one, so that slow servers of one keep nobody else waiting.
    """

    at_once: int = 4
    of_an_organization: int = 2


class Looks:
    """Counts the looks of this process. None of them queues: who comes too many is asked to come again."""

    def __init__(self, limits: LookLimits) -> None:
        self._limits = limits
        self._under_way: Counter[UUID] = Counter()

    @contextmanager
    def one(self, organization_id: UUID) -> Iterator[None]:
        """Hold a place for one look.

        Raises:
            RetryLater: the organization, or the process, has as many under way as it may.
        """
        if self._under_way[organization_id] >= self._limits.of_an_organization:
            raise RetryLater("other servers of this organization are being verified; try again when that is done")
        if self._under_way.total() >= self._limits.at_once:
            raise RetryLater("many servers are being verified just now; try again in a moment")
        self._under_way[organization_id] += 1
        try:
            yield
        finally:
            self._under_way[organization_id] -= 1
            if not self._under_way[organization_id]:
                del self._under_way[organization_id]
