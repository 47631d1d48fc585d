"""Following a run: what is there, then what comes, until it is over. Reads rows again and again; holds nothing in between.

No notifications of the database are used: a transaction pooler hands none on, and a lost one would need the reading anyway.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from agentic.services.runs.events import RunEventReader, RunEvents


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How often a follower looks, in seconds."""

    first_s: float = 0.25
    """After something happened."""
    most_s: float = 2.0
    """While nothing happens; reached step by step."""
    parked_s: float = 5.0
    """The same for a run that waits for a person or a provider."""
    growth: float = 1.5
    page: int = 200
    """Events a look reads at most."""

    def next_s(self, last_s: float, page: RunEvents) -> float:
        """How long to wait before the next look. Pure."""
        if page.more:
            return 0.0
        if page.events:
            return self.first_s
        return min(max(last_s, self.first_s) * self.growth, self.parked_s if page.state == "parked" else self.most_s)


async def follow(
    reader: RunEventReader,
    organization_id: UUID,
    run_id: UUID,
    *,
    after: int = 0,
    pace: Pace | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[RunEvents]:
    """Yield what each look found, empty pages too, so that the caller can show that it is alive; ends with the run.

    Raises:
        NotFound: there is no such run here, or it has gone.
    """
    pace = pace or Pace()
    wait_s = 0.0
    while True:
        page = await reader.events(organization_id, run_id, after=after, limit=pace.page)
        after = page.events[-1].seq if page.events else after
        yield page
        if page.over:
            return
        wait_s = pace.next_s(wait_s, page)
        await sleep(wait_s)
