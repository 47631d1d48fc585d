"""The operator's side of the journal: calls whose outcome is unknown are settled by a person with written evidence (ADR 0009)."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.plain import clean_text
from agentic.contract.principal import Role
from agentic.services.journal.models import UncertainCall
from agentic.services.tools.call_events import CallEvent, EventSink, log_event, tell
from agentic.services.tools.telemetry import count_uncertain

MIN_EVIDENCE_CHARS = 3
MAX_EVIDENCE_CHARS = 4000


class JournalStore(Protocol):
    """Compare-and-set on state and epoch, authority checked in the same statement."""

    async def list_uncertain(self, organization_id: UUID, *, run_id: UUID | None) -> Sequence[UncertainCall]:
        """Calls whose outcome is unknown."""
        ...

    async def confirm(self, call: UncertainCall, *, user_id: UUID, evidence: str) -> bool:
        """It happened: completed."""
        ...

    async def deny(self, call: UncertainCall, *, user_id: UUID, evidence: str) -> bool:
        """It did not: the key is free under a new epoch, and a repeat needs a new approval."""
        ...

    async def role(self, organization_id: UUID, user_id: UUID) -> Role | None:
        """A person's role."""
        ...

    async def sweep(self, *, grace_s: float, limit: int) -> Sequence[CallEvent]:
        """Apply the table's last row to claims nobody proposes again; what is told of those that became uncertain."""
        ...

    async def sweep_holds(self, *, limit: int) -> int:
        """Count as spent what reads hold whose end nobody told; how many."""
        ...


class JournalService:
    """Lists and settles uncertain calls, and sweeps stale claims."""

    def __init__(self, store: JournalStore, *, events: EventSink = log_event) -> None:
        self._store = store
        self._events = events

    async def list_uncertain(self, organization_id: UUID, *, run_id: UUID | None = None) -> Sequence[UncertainCall]:
        """Calls whose outcome is unknown, oldest first."""
        return await self._store.list_uncertain(organization_id, run_id=run_id)

    async def show(self, organization_id: UUID, ref: str) -> UncertainCall:
        """The uncertain call of this reference.

        Raises:
            NotFound: there is none in this organization, or it is settled.
        """
        for call in await self._store.list_uncertain(organization_id, run_id=None):
            if call.ref == ref:
                return call
        raise NotFound(f"no uncertain call has the reference {ref}; 'agentic uncertain list' shows those that are open")

    async def settle(
        self, organization_id: UUID, ref: str, *, happened: bool, user_id: UUID, evidence: str
    ) -> UncertainCall:
        """Say whether the effect happened.

        Args:
            happened: ``True`` completes the call; ``False`` frees its key, and a repeat asks a new approval.
            evidence: what the operator saw, 3 to 4,000 characters; kept in the run's record.

        Raises:
            NotFound: no such open call.
            NotPermitted: the person is not an operator.
            Conflict: somebody else settled it first.
        """
        evidence = clean_text(evidence).strip()
        if not MIN_EVIDENCE_CHARS <= len(evidence) <= MAX_EVIDENCE_CHARS:
            raise Conflict(
                f"write down what you saw: evidence has {MIN_EVIDENCE_CHARS} to {MAX_EVIDENCE_CHARS} characters"
            )
        call = await self.show(organization_id, ref)
        act = self._store.confirm if happened else self._store.deny
        if await act(call, user_id=user_id, evidence=evidence):
            return call
        role = await self._store.role(organization_id, user_id)
        if role is None or not role.holds(Role.OPERATOR):
            raise NotPermitted(
                f"settling an unknown outcome takes the role operator; this person is {role or 'no member'}"
            )
        raise Conflict(f"call {ref} was settled by somebody else a moment ago")

    async def sweep(self, *, grace_s: float, limit: int = 100) -> int:
        """Hand claims that nobody will propose again to an operator, and forget those that had no effect (J5).

        Returns how many became uncertain. Each is told and counted as if its own worker had come to that end.
        """
        uncertain = await self._store.sweep(grace_s=grace_s, limit=limit)
        for event in uncertain:
            count_uncertain(event.tool_name, event.tool_source)
            tell(event, self._events)
        return len(uncertain)

    async def sweep_holds(self, *, limit: int = 100) -> int:
        """Count as spent what a metered read holds that outlived its lease: the vendor may have charged (M1, ADR 0029)."""
        return await self._store.sweep_holds(limit=limit)
