"""FullEnrich when nobody stands beside it: batches end by themselves, and are reported with what could have been found."""

import asyncio
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue

from agentic.local.providers.fullenrich.app import Batch, FullEnrichStandIn
from agentic.local.providers.knobs import AnswerKnobs, Answers, Order

_LOOK_S = 0.2
_AGAIN_S = 2.0


class Finish(Order):
    """How a batch ends, and what was found by ``ref``; ``None`` finds everybody who has a domain."""

    id: str | None = None
    """``None`` for the batch that was taken last."""
    status: Literal["FINISHED", "CANCELED", "CREDITS_INSUFFICIENT", "RATE_LIMIT", "UNKNOWN"] = "FINISHED"
    found: dict[str, str] | None = None
    times: int = Field(default=1, ge=0, le=10)
    """How often it is reported; 0 leaves us to ask."""


class Orders(Answers):
    """What may be ordered of FullEnrich."""

    finish: Finish | None = None
    after_s: float | None = Field(default=None, ge=0, le=86_400)
    """From now on, seconds after which a batch ends by itself."""


class FullEnrichKnobs:
    """The knobs, and whoever ends batches.

    Args:
        stand_in: which has them.
        after_s: seconds after which a batch ends by itself.
    """

    def __init__(self, stand_in: FullEnrichStandIn, *, after_s: float) -> None:
        self._stand_in = stand_in
        self._answers = AnswerKnobs(stand_in)
        self._after_s = after_s
        self._taken_at: dict[str, float] = {}

    async def turn(self, order: bytes) -> JsonValue:
        """See ``Knobs``."""
        ordered = Orders.model_validate_json(order)
        self._stand_in.then(*(each.ordered for each in ordered.then))
        if ordered.after_s is not None:
            self._after_s = ordered.after_s
        told = None
        if ordered.finish is not None:
            batch = self._batch(ordered.finish.id)
            told = batch is not None and await self._end(batch, ordered.finish)
        return {"ordered": len(ordered.then), "after_s": self._after_s, "finished": told}

    def seen(self) -> JsonValue:
        """See ``Knobs``."""
        batches: list[JsonValue] = [
            {"id": batch.id, "name": batch.name, "status": batch.status, "rows": len(batch.rows)}
            for batch in self._stand_in.batches.values()
        ]
        seen = self._answers.seen()
        return {**(seen if isinstance(seen, dict) else {}), "batches": batches}

    async def run(self) -> None:
        """End batches until cancelled."""
        now = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as reports:
            while True:
                for batch in self._stand_in.batches.values():
                    since = self._taken_at.setdefault(batch.id, now())
                    if batch.status == "IN_PROGRESS" and now() - since >= self._after_s:
                        reports.create_task(self._end(batch, Finish()))
                await asyncio.sleep(_LOOK_S)

    async def _end(self, batch: Batch, how: Finish) -> bool:
        """End and report it; whether every report was taken."""
        found = how.found if how.found is not None else _plausible(batch)
        self._stand_in.finish(batch, how.status, found=found if how.status == "FINISHED" else {})
        return all([await self._stand_in.deliver(batch, again_s=_AGAIN_S) for _ in range(how.times)])

    def _batch(self, batch_id: str | None) -> Batch | None:
        batches = self._stand_in.batches
        if batch_id is not None:
            return batches.get(batch_id)
        return self._stand_in.last if batches else None


def _plausible(batch: Batch) -> dict[str, str]:
    return {row["custom"]["ref"]: address_of(row) for row in batch.rows if row.get("domain")}


def address_of(row: Mapping[str, Any]) -> str:
    """An address that the person of a row could have, in plain letters."""
    plain = unicodedata.normalize("NFKD", f"{row['first_name']}.{row['last_name']}").encode("ascii", "ignore").decode()
    return f"{plain.lower().replace(' ', '.')}@{row['domain']}"
