"""Chains, heads and the journal beside them, read for a check. The statements stand in ``queries/audit.sql``."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from agentic.contract.principal import Role
from agentic.services.audit.models import Chain, ChainFacts, Finding, FindingKind, SuspectLine
from agentic.storage.database import Database
from agentic.storage.member_store import PostgresMemberStore
from agentic.storage.queries import load_queries


class PostgresAuditStore:
    """Implements ``AuditStore``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sql = load_queries("audit")
        self._members = PostgresMemberStore(database)

    async def known(self, organization_id: UUID, run_id: UUID) -> bool:
        key = {"organization_id": organization_id, "run_id": run_id}
        return await self._db.one(self._sql["known"], key) is not None

    async def page(
        self, organization_id: UUID, *, since: datetime | None, after: UUID | None, limit: int
    ) -> Sequence[UUID]:
        params = {"organization_id": organization_id, "since": since, "after": after, "limit": limit}
        return [row["id"] for row in await self._db.all(self._sql["page"], params)]

    async def chains(self, organization_id: UUID, runs: Sequence[UUID]) -> Sequence[ChainFacts]:
        params = {"organization_id": organization_id, "runs": list(runs)}
        return [
            _facts(chain, row)
            for chain, lines in ((Chain.DECISIONS, "decisions_lines"), (Chain.EFFECTS, "effects_lines"))
            for row in await self._db.all(self._sql[lines] + self._sql["chain"], {**params, "chain": str(chain)})
        ]

    async def disagreements(self, organization_id: UUID, runs: Sequence[UUID]) -> Mapping[UUID, Sequence[Finding]]:
        found: dict[UUID, list[Finding]] = defaultdict(list)
        params = {"organization_id": organization_id, "runs": list(runs)}
        for row in await self._db.all(self._sql["disagreements"], params):
            found[row["run_id"]].append(_disagreement(row))
        return found

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        return await self._members.role(organization_id, user_id)


def _facts(chain: Chain, row: Mapping[str, Any]) -> ChainFacts:
    return ChainFacts(
        run_id=row["run_id"],
        chain=chain,
        lines=row["lines"],
        seq=row["seq"],
        hash=row["hash"],
        head_seq=row["head_seq"],
        head_hash=row["head_hash"],
        suspects=tuple(SuspectLine(**line) for line in row["suspects"]),
    )


def _disagreement(row: Mapping[str, Any]) -> Finding:
    tool, seq = row["tool"], row["seq"]
    match FindingKind(row["kind"]):
        case FindingKind.NO_EFFECT:
            detail = f"the journal holds this call as {row['word']}, and no effect line says so"
            return Finding(kind=FindingKind.NO_EFFECT, table="effects", tool=tool, ref=row["ref"], detail=detail)
        case FindingKind.NO_JOURNAL:
            detail = f"the last effect line of this call says {row['word']}, and the journal does not"
            return Finding(
                kind=FindingKind.NO_JOURNAL,
                table="effects",
                first=seq,
                last=seq,
                tool=tool,
                ref=row["ref"],
                detail=detail,
            )
        case FindingKind.NO_DECISION:
            detail = f"{row['found']} attempts left an effect line, and {row['allowed']} decisions allowed one"
            return Finding(kind=FindingKind.NO_DECISION, table="policy_decisions", tool=tool, detail=detail)
        case (
            FindingKind.ALTERED
            | FindingKind.MOVED
            | FindingKind.UNLINKED
            | FindingKind.MISSING
            | FindingKind.INSERTED
            | FindingKind.HEAD_MISSING
            | FindingKind.HEAD_DIFFERS
        ) as other:
            raise ValueError(f"the statement of disagreements found {other}, which is about one chain")
        case _ as never:
            assert_never(never)
