"""The invoker's window on Postgres: preflight, COMMIT 1, COMMIT 2. The statements stand in ``queries/calls.sql``."""

from collections.abc import Mapping
from typing import Any, LiteralString

from agentic.contract.errors import LeaseLost
from agentic.contract.principal import Role, RunCeilings
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.metering import Hold
from agentic.services.tools.models import IdempotencyClass
from agentic.services.tools.ports import (
    CallEnd,
    CallKey,
    Claim,
    ClaimRequest,
    CoveringApproval,
    JournalRow,
    Preflight,
    RulesVersion,
)
from agentic.services.tools.records import DecisionRecord, SpanRecord
from agentic.storage.artifact_columns import artifact_columns
from agentic.storage.database import Database
from agentic.storage.encoding import jsonb, record, text
from agentic.storage.queries import load_queries


class PostgresCallLedger:
    """Implements ``CallLedger``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("calls")
        self._claim: LiteralString = self._sql["claim_run"] + self._sql["claim_body"] + self._sql["claim_row"]

    async def preflight(
        self, key: CallKey, *, inv: ToolInvocation, tool: str, version: int, contract_hash: str, digest: str
    ) -> Preflight | None:
        row = await self._db.one(
            self._sql["preflight"],
            {
                "organization_id": key.organization_id,
                "run_id": inv.run_id,
                "scope": key.scope,
                "key": key.key,
                "tool": tool,
                "version": version,
                "contract_hash": contract_hash,
                "digest": digest,
            },
        )
        return None if row is None else _preflight(row)

    async def refuse(
        self, *, inv: ToolInvocation, span: SpanRecord, decision: DecisionRecord | None, proposal_id: Any, code: str
    ) -> None:
        row = await self._db.one(
            self._sql["refuse"],
            {
                "run_id": inv.run_id,
                "organization_id": inv.organization_id,
                "fence": inv.fence,
                "proposal_id": proposal_id,
                "code": code,
                **_span_params(span),
                **_decision_params(decision),
            },
        )
        if row is None or not row["refused"]:
            raise LeaseLost(f"run {inv.run_id} is led by another worker")

    async def claim(self, request: ClaimRequest, *, inv: ToolInvocation) -> Claim | None:
        row = await self._db.one(self._claim, claim_params(request, inv=inv))
        return None if row is None else claimed(request, row)

    async def mark_effect_sent(self, claim: Claim) -> bool:
        return await self._db.count(self._sql["mark_effect_sent"], _fence(claim)) == 1

    async def count_repeat(self, claim: Claim) -> bool:
        return await self._db.count(self._sql["count_repeat"], _fence(claim)) == 1

    async def complete(self, claim: Claim, end: CallEnd) -> bool:
        return await self._end("end_complete", "completed", claim, end)

    async def release(self, claim: Claim, end: CallEnd) -> bool:
        return await self._end("end_release", "released", claim, end)

    async def hold(self, claim: Claim, end: CallEnd) -> bool:
        return await self._end("end_hold", "held", claim, end)

    async def uncertain(self, claim: Claim, end: CallEnd, *, reason: str) -> bool:
        return await self._end("end_uncertain", "uncertain", claim, end, reason=reason)

    async def _end(self, head: str, kind: str, claim: Claim, end: CallEnd, *, reason: str | None = None) -> bool:
        statement: LiteralString = f"with done as (\n{self._sql[head]}\n){self._sql['end_record']}"
        if end.hold is not None:
            statement += self._sql["end_reservation"]
        statement += self._sql["end_row"]
        params = {
            **_fence(claim),
            **_span_params(end.span),
            "span_id": claim.span_id,
            "outcome_status": end.outcome_status,
            "outcome_code": end.outcome_code,
            "output": end.output,
            "proposal_id": end.proposal_id,
            "effect_kind": kind,
            "reason": text(reason),
            "usage": jsonb([record(item) for item in end.usage]),
            "hold": end.hold,
            "artifact_id": end.artifact_id,
            "arguments_text": end.arguments_text,
            **artifact_columns(end.artifacts),
        }
        row = await self._db.one(statement, params)
        return row is not None and row["ended"] == 1


def claim_params(request: ClaimRequest, *, inv: ToolInvocation) -> dict[str, Any]:
    """The parameters of COMMIT 1."""
    spec, seen = request.spec, request.seen
    return {
        "run_id": inv.run_id,
        "organization_id": request.key.organization_id,
        "fence": request.fence,
        "scope": request.key.scope,
        "key": request.key.key,
        "request_hash": request.key.request_hash,
        "tool": spec.name,
        "contract_hash": spec.contract_hash,
        "digest": request.digest,
        "arguments_text": request.arguments_text,
        "proposal_id": request.proposal_id,
        "approval_id": request.approval_id,
        "lease_s": request.lease_s,
        "class": str(spec.idempotency),
        "watermark": str(request.watermark),
        "vendor_key_ttl_s": spec.vendor_key_ttl_s,
        "connection_id": request.connection_id,
        "origin_trust": str(request.origin_trust),
        "seen_epoch": seen.epoch if seen else None,
        "seen_attempt": seen.attempt if seen else None,
        "seen_span_id": seen.span_id if seen else None,
        **_span_params(request.span),
        **_decision_params(request.decision),
    }


def claimed(request: ClaimRequest, row: Mapping[str, Any], *, hold: Hold | None = None) -> Claim:
    """The claim that COMMIT 1 made."""
    return Claim(
        key=request.key,
        tool=request.spec.name,
        epoch=row["epoch"],
        attempt=row["attempt"],
        repeats=row["repeats"],
        lease_expires_at=row["lease_expires_at"],
        effect_sent_at=row["effect_sent_at"],
        span_id=request.span.id,
        hold=hold,
    )


def _fence(claim: Claim) -> dict[str, Any]:
    return {
        "organization_id": claim.key.organization_id,
        "scope": claim.key.scope,
        "key": claim.key.key,
        "epoch": claim.epoch,
        "attempt": claim.attempt,
    }


def _span_params(span: SpanRecord) -> dict[str, Any]:
    return {
        "span_id": span.id,
        "span_parent_id": span.parent_id,
        "span_name": text(span.name),
        "span_status": str(span.status) if span.status else None,
        "span_code": span.code,
        "span_started_at": span.started_at,
        "span_ended_at": span.ended_at,
        "span_attributes": jsonb(dict(span.attributes)),
        "span_input": text(span.input),
        "span_output": text(span.output),
    }


def _decision_params(decision: DecisionRecord | None) -> dict[str, Any]:
    return {
        "decision_id": decision.id if decision else None,
        "decision_contract_hash": decision.contract_hash if decision else None,
        "decision_digest": decision.digest if decision else None,
        "decision_approval_id": decision.approval_id if decision else None,
        "decision_effect": decision.effect if decision else None,
        "decision_rule_id": decision.rule_id if decision else None,
        "decision_rule_version": decision.rule_version if decision else None,
        "decision_reason": text(decision.reason) if decision else None,
        "decision_context_trust": str(decision.context_trust) if decision else None,
    }


def _preflight(row: dict[str, Any]) -> Preflight:
    return Preflight(
        now=row["now"],
        fence=row["fence"],
        lease_live=row["lease_live"],
        cancelled=row["cancelled"],
        context_trust=Trust(row["context_trust"]),
        tool_calls=row["tool_calls"],
        ceilings=RunCeilings.model_validate(row["ceilings"]),
        journal=_journal_row(row),
        approval=_approval(row),
        tool_enabled=row["tool_enabled"],
        granted=row["granted"],
        member=row["member"],
        run_kind=row["run_kind"],
        rules_version=RulesVersion(
            platform=row["platform_rules_version"], organization=row["organization_rules_version"]
        ),
    )


def _journal_row(row: dict[str, Any]) -> JournalRow | None:
    if row["claim_state"] is None:
        return None
    return JournalRow(
        state=row["claim_state"],
        request_hash=row["claim_request_hash"],
        epoch=row["claim_epoch"],
        attempt=row["claim_attempt"],
        lease_live=row["claim_lease_live"],
        lease_expires_at=row["claim_lease_expires_at"],
        idempotency_class=IdempotencyClass(row["claim_class"]),
        effect_sent_at=row["claim_effect_sent_at"],
        vendor_key_ttl_s=row["claim_vendor_key_ttl_s"],
        output=row["claim_output"],
        span_id=row["claim_span_id"],
        connection_id=row["claim_connection_id"],
    )


def _approval(row: dict[str, Any]) -> CoveringApproval | None:
    if row["approval_id"] is None:
        return None
    return CoveringApproval(
        id=row["approval_id"],
        status=row["approval_status"],
        decided_by=row["approval_decided_by"],
        decider_role=Role(row["approval_decider_role"]) if row["approval_decider_role"] else None,
        comment=row["approval_comment"],
        connection_id=row["approval_connection_id"],
    )
