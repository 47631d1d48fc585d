"""A renewal of a lease that is answered after the lease was given back."""

import asyncio
from typing import Any

from agentic.services.runs.models import Lease, Renewed

_BOUND_S = 10


def renewed_too_late(store: Any, way_out: str) -> None:
    """From now on this way out of a store returns only when a renewal has found no lease any more.

    Args:
        store: a run store; its methods are replaced.
        way_out: the name of the method that gives the lease back.
    """
    renew, give_back, gone = store.renew, getattr(store, way_out), asyncio.Event()

    async def watched(lease: Lease, *, lease_s: float) -> Renewed | None:
        renewed: Renewed | None = await renew(lease, lease_s=lease_s)
        if renewed is None:
            gone.set()
        return renewed

    async def slow(*args: Any, **kwargs: Any) -> Any:
        moved = await give_back(*args, **kwargs)
        await asyncio.wait_for(gone.wait(), _BOUND_S)
        for _ in range(10):
            await asyncio.sleep(0)  # the keeper hears the answer
        return moved

    store.renew = watched
    setattr(store, way_out, slow)
