"""Checks the records of runs. Reads alone: what is found is for a person to judge."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import NotFound, NotPermitted
from agentic.contract.principal import Role
from agentic.services.audit.judgement import judge
from agentic.services.audit.models import ChainFacts, Finding, RunAudit

PAGE_RUNS = 200
"""Runs checked with one statement a chain."""


class AuditStore(Protocol):
    """Reads chains with their heads, and what they do not agree with; each answer is one statement's snapshot."""

    async def known(self, organization_id: UUID, run_id: UUID) -> bool:
        """Whether the organization has this run."""
        ...

    async def page(
        self, organization_id: UUID, *, since: datetime | None, after: UUID | None, limit: int
    ) -> Sequence[UUID]:
        """Runs in the order of their ids, created at ``since`` or later, following the run ``after``."""
        ...

    async def chains(self, organization_id: UUID, runs: Sequence[UUID]) -> Sequence[ChainFacts]:
        """Both chains of each of these runs."""
        ...

    async def disagreements(self, organization_id: UUID, runs: Sequence[UUID]) -> Mapping[UUID, Sequence[Finding]]:
        """What chains, journal and decisions of these runs do not agree on."""
        ...

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        """A person's role."""
        ...


class AuditService:
    """Says whether what is on record about runs is what was written."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    async def verify(self, organization_id: UUID, run_id: UUID, *, user_id: UUID | None = None) -> RunAudit:
        """Check one run, which may be under way.

        Args:
            organization_id: whose run.
            run_id: the run.
            user_id: who asks; ``None`` for whoever holds the database itself.

        Raises:
            NotPermitted: the person is not an operator.
            NotFound: there is no such run in this organization.
        """
        if user_id is not None:
            role = await self._store.role(organization_id, user_id)
            if role is None or not role.holds(Role.OPERATOR):
                raise NotPermitted(
                    f"checking a run's record takes the role operator; this person is {role or 'no member'}"
                )
        if not await self._store.known(organization_id, run_id):
            raise NotFound(f"there is no run {run_id} in this organization; 'agentic runs list' shows those there are")
        return (await self._audits(organization_id, [run_id]))[0]

    async def verify_all(self, organization_id: UUID, *, since: datetime | None = None) -> AsyncIterator[RunAudit]:
        """Check every run of an organization, page by page.

        Args:
            organization_id: whose runs.
            since: only runs created then or later; ``None`` for all.
        """
        after: UUID | None = None
        while True:
            runs = await self._store.page(organization_id, since=since, after=after, limit=PAGE_RUNS)
            for audit in await self._audits(organization_id, runs):
                yield audit
            if len(runs) < PAGE_RUNS:
                return
            after = runs[-1]

    async def _audits(self, organization_id: UUID, runs: Sequence[UUID]) -> list[RunAudit]:
        if not runs:
            return []
        chains: dict[UUID, list[ChainFacts]] = defaultdict(list)
        for facts in await self._store.chains(organization_id, runs):
            chains[facts.run_id].append(facts)
        disagreements = await self._store.disagreements(organization_id, runs)
        return [judge(run_id, chains[run_id], disagreements.get(run_id, ())) for run_id in runs]
