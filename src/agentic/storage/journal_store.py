"""The operator's side of the journal in Postgres. The statements stand in ``queries/journal.sql``."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentic.contract.encoding import encode
from agentic.contract.principal import Role
from agentic.contract.results import ErrorCode, ToolResult
from agentic.contract.trust import Trust
from agentic.services.journal.models import Settlement, UncertainCall
from agentic.services.tools.abandoned import AbandonedCall
from agentic.services.tools.call_events import CallEvent, CallEventName, exported_call_id
from agentic.services.tools.contracts import missing_contract, read_contract
from agentic.services.tools.keys import usage_id_of
from agentic.services.tools.models import IdempotencyClass
from agentic.services.tools.ports import JournalRow
from agentic.storage.database import Database
from agentic.storage.encoding import text
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.queries import load_queries


class PostgresJournalStore:
    """Implements ``JournalStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("journal")
        self._members = PostgresMemberStore(database)

    async def list_uncertain(self, organization_id: UUID, *, run_id: UUID | None) -> Sequence[UncertainCall]:
        rows = await self._db.all(self._sql["list_uncertain"], {"organization_id": organization_id, "run_id": run_id})
        return [UncertainCall.model_validate(row) for row in rows]

    async def settled(self, organization_id: UUID, ref: str) -> Settlement | None:
        row = await self._db.one(self._sql["settled"], {"organization_id": organization_id, "ref": text(ref)})
        return None if row is None else Settlement(happened=row["kind"] == "confirmed", by=row["actor"], at=row["at"])

    async def written_to(self, organization_id: UUID, addresses: Sequence[str]) -> set[str]:
        """Which of these addresses, written as they are given, an email of the organization has gone to."""
        params = {"organization_id": organization_id, "addresses": [text(address) for address in addresses]}
        return {row["address"] for row in await self._db.all(self._sql["written_to"], params)}

    async def confirm(self, call: UncertainCall, *, user_id: UUID, evidence: str) -> bool:
        answer = ToolResult(ok=True, data={"confirmed_by_operator": True, "evidence": evidence})
        params = {
            **_key(call),
            "user_id": user_id,
            "evidence": text(evidence),
            "usage_id": usage_id_of(call.organization_id, call.scope, call.key, call.epoch),
            "output": encode(answer.model_dump(mode="json")),
        }
        return await self._db.one(self._sql["confirm"], params) is not None

    async def deny(self, call: UncertainCall, *, user_id: UUID, evidence: str) -> bool:
        params = {**_key(call), "user_id": user_id, "evidence": text(evidence)}
        return await self._db.one(self._sql["deny"], params) is not None

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        return await self._members.role(organization_id, user_id)

    async def take_stale(
        self, tools: Sequence[str], *, grace_s: float, lease_s: float, limit: int
    ) -> Sequence[AbandonedCall]:
        params = {"probed": list(tools), "grace_s": grace_s, "lease_s": lease_s, "limit": limit}
        return [_abandoned(row) for row in await self._db.all(self._sql["take_stale"], params)]

    async def sweep(
        self, *, grace_s: float, limit: int, probed: Sequence[str] = (), asked: Sequence[str] = ()
    ) -> Sequence[CallEvent]:
        await self._db.count(self._sql["sweep_stale"], {"grace_s": grace_s})
        params = {"grace_s": grace_s, "limit": limit, "probed": list(probed), "asked": list(asked)}
        return [_uncertain(row) for row in await self._db.all(self._sql["sweep_uncertain"], params)]

    async def sweep_holds(self, *, limit: int) -> int:
        row = await self._db.one(self._sql["sweep_holds"], {"limit": limit})
        return int(row["swept"]) if row is not None else 0


def _key(call: UncertainCall) -> dict[str, Any]:
    return {"organization_id": call.organization_id, "scope": call.scope, "key": call.key, "epoch": call.epoch}


def _abandoned(row: Mapping[str, Any]) -> AbandonedCall:
    return AbandonedCall(
        organization_id=row["organization_id"],
        scope=row["scope"],
        key=row["key"],
        row=JournalRow(
            state="processing",
            request_hash=row["request_hash"],
            epoch=row["epoch"],
            attempt=row["attempt"],
            lease_live=True,
            lease_expires_at=row["lease_expires_at"],
            idempotency_class=IdempotencyClass(row["idempotency_class"]),
            effect_sent_at=row["effect_sent_at"],
            vendor_key_ttl_s=row["vendor_key_ttl_s"],
            output=None,
            span_id=row["span_id"],
            connection_id=row["connection_id"],
        ),
        run_id=row["run_id"],
        root_run_id=row["root_run_id"],
        user_id=row["user_id"],
        definition=row["definition_name"],
        fence=row["fence"],
        spec=missing_contract(contract_hash=row["contract_hash"], name=row["tool"])
        if row["spec"] is None
        else read_contract(
            contract_hash=row["contract_hash"], name=row["name"], version=row["version"], text=row["spec"]
        ),
        arguments_text=row["arguments_text"],
        step_path=row["step_path"],
        proposal_id=row["proposal_id"],
        origin_trust=Trust(row["origin_trust"]),
    )


def _uncertain(row: Mapping[str, Any]) -> CallEvent:
    return CallEvent(
        name=CallEventName.UNCERTAIN,
        invocation_id=row["span_id"],
        run_id=row["run_id"],
        step_path=row["step_path"],
        call_id=exported_call_id(row["call_id"]),
        tool_name=row["tool"],
        tool_source=row["tool_source"],
        tool_version=row["tool_version"],
        idempotency_class=row["idempotency_class"],
        parallel_group=None,
        effect_sent=True,
        outcome_status="uncertain",
        reason_code=str(ErrorCode.OUTCOME_UNKNOWN),
    )
