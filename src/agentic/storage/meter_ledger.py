"""The meter's window on Postgres: a metered COMMIT 1, and the holds of reads. The statements stand in ``queries/calls.sql``.

A hold is two statements of one transaction and one round trip: a lock of the run's tree, then the sum and the hold. The second
reads with a snapshot of its own, which has what everybody before it in the queue committed.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, LiteralString
from uuid import UUID

from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.keys import read_usage_id
from agentic.services.tools.metering import Hold, OverBudget, Price
from agentic.services.tools.ports import Claim, ClaimRequest
from agentic.services.tools.records import UsageRecord
from agentic.storage.call_ledger import claim_params, claimed
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, record
from agentic.storage.queries import load_queries


class PostgresMeterLedger:
    """Implements ``MeterLedger``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = sql = load_queries("calls")
        self._claim: LiteralString = (
            sql["budget"] + sql["claim_run_metered"] + sql["claim_body"] + sql["claim_row_metered"]
        )
        self._hold_read: LiteralString = sql["budget"] + sql["hold_for_read"]

    async def claim_metered(
        self, request: ClaimRequest, *, bound: Decimal, inv: ToolInvocation
    ) -> Claim | OverBudget | None:
        key, seen = request.key, request.seen
        params = {
            **claim_params(request, inv=inv),
            "bound": bound,
            "owner": "claim",
            "held_ref": None if seen is None else f"{key.organization_id}:{key.scope}:{key.key}:{seen.epoch}",
        }
        row = await self._locked(self._claim, params)
        if row is None or not row["as_seen"]:
            return None
        if not row["affordable"]:
            return OverBudget()
        return None if row["epoch"] is None else claimed(request, row, hold=_hold(row, bound))

    async def hold_read(
        self, *, tool: str, span_id: UUID, bound: Decimal, lease_s: float, inv: ToolInvocation
    ) -> Hold | OverBudget | None:
        params = {
            "run_id": inv.run_id,
            "organization_id": inv.organization_id,
            "fence": inv.fence,
            "owner": "read",
            "held_ref": str(span_id),
            "usage_id": read_usage_id(span_id),
            "span_id": span_id,
            "tool": tool,
            "bound": bound,
            "lease_s": lease_s,
        }
        row = await self._locked(self._hold_read, params)
        if row is None:
            return None
        return _hold(row, bound) if row["affordable"] else OverBudget()

    async def end_read(
        self,
        *,
        span_id: UUID,
        state: Literal["settled", "released"],
        usage: Sequence[UsageRecord],
        organization_id: UUID,
    ) -> bool:
        row = await self._db.one(
            self._sql["end_read"],
            {
                "organization_id": organization_id,
                "held_ref": str(span_id),
                "usage_id": read_usage_id(span_id),
                "state": state,
                "usage": jsonb([record(item) for item in usage]),
            },
        )
        if row is None:
            return False
        return bool(row["ended"]) or (row["stood"] == state and row["lines"] == len(usage))

    async def hold_of(self, *, tool: str, bound: Decimal, organization_id: UUID) -> Hold:
        [row] = await self._db.all(self._sql["prices"], {"organization_id": organization_id, "tool": tool})
        return _hold(row, bound)

    async def _locked(self, statement: LiteralString, params: dict[str, Any]) -> dict[str, Any] | None:
        return (await self._db.atomic([(self._sql["lock_meter"], params), (statement, params)]))[1]


def _hold(row: dict[str, Any], bound: Decimal) -> Hold:
    return Hold(bound=bound, prices=[_price(each) for each in row["prices"] or ()], at=row["now"])


def _price(row: dict[str, Any]) -> Price:
    return Price(
        id=UUID(row["id"]),
        organization_id=None if row["organization_id"] is None else UUID(row["organization_id"]),
        provider=row["provider"],
        item=row["item"],
        unit=row["unit"],
        unit_price=Decimal(row["unit_price"]),
        valid_from=datetime.fromisoformat(row["valid_from"]),
    )
