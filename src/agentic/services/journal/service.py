"""The operator's side of the journal: calls whose outcome is unknown are settled by a person with written evidence (ADR 0009)."""

import asyncio
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from agentic.contract.errors import Conflict, NotFound, NotPermitted
from agentic.contract.plain import clean_text
from agentic.contract.principal import Role
from agentic.services.journal.models import Settlement, UncertainCall
from agentic.services.tools.abandoned import AbandonedCall, AbandonedCalls
from agentic.services.tools.call_events import CallEvent, EventSink, log_event, tell
from agentic.services.tools.telemetry import count_uncertain

MIN_EVIDENCE_CHARS = 3
MAX_EVIDENCE_CHARS = 4000
PROBES_AT_ONCE = 20
"""How many claims one sweep asks about; those beyond wait for the next."""
PROBE_LEASE_S = 60.0
"""How long a claim is kept from others while its tool is asked; longer than a probe may take."""


class JournalStore(Protocol):
    """Compare-and-set on state and epoch, authority checked in the same statement."""

    async def list_uncertain(self, organization_id: UUID, *, run_id: UUID | None) -> Sequence[UncertainCall]:
        """Calls whose outcome is unknown."""
        ...

    async def settled(self, organization_id: UUID, ref: str) -> Settlement | None:
        """How an outcome of this reference was settled last; ``None`` when there never was one."""
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

    async def take_stale(
        self, tools: Sequence[str], *, grace_s: float, lease_s: float, limit: int
    ) -> Sequence[AbandonedCall]:
        """Take the lease of claims of these tools that nobody proposes again and whose effect may have happened."""
        ...

    async def sweep(
        self, *, grace_s: float, limit: int, probed: Sequence[str] = (), asked: Sequence[str] = ()
    ) -> Sequence[CallEvent]:
        """Apply the table's last row to claims nobody proposes again; what is told of those that became uncertain.

        Args:
            probed: tools that can be asked; their claims are left alone but for those in ``asked``.
            asked: references of claims that were taken and asked about, and nobody could tell.
        """
        ...

    async def sweep_holds(self, *, limit: int) -> int:
        """Count as spent what reads hold whose end nobody told; how many."""
        ...


class JournalService:
    """Lists and settles uncertain calls, and sweeps stale claims."""

    def __init__(
        self, store: JournalStore, *, events: EventSink = log_event, abandoned: AbandonedCalls | None = None
    ) -> None:
        self._store = store
        self._events = events
        self._abandoned = abandoned

    async def list_uncertain(self, organization_id: UUID, *, run_id: UUID | None = None) -> Sequence[UncertainCall]:
        """Calls whose outcome is unknown, oldest first."""
        return await self._store.list_uncertain(organization_id, run_id=run_id)

    async def show(self, organization_id: UUID, ref: str) -> UncertainCall:
        """The uncertain call of this reference.

        Raises:
            NotFound: there is none in this organization.
            Conflict: it is settled; the message names who, when and how.
        """
        for call in await self._store.list_uncertain(organization_id, run_id=None):
            if call.ref == ref:
                return call
        settled = await self._store.settled(organization_id, ref)
        if settled is not None:
            raise _settled(ref, settled)
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
            Conflict: it is settled already; the message names who, when and how.
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
        await self.show(organization_id, ref)  # somebody settled it a moment ago, and the conflict says who
        raise Conflict(f"call {ref} is being settled by somebody else; look again")

    async def sweep(self, *, grace_s: float, limit: int = 100) -> int:
        """Hand claims that nobody will propose again to an operator, and forget those that had no effect (J5).

        Where this deployment has the tool and the tool a probe, that is asked first, and an operator only when it cannot tell.
        Returns how many became uncertain. Each is told and counted as if its own worker had come to that end.
        """
        probed = self._abandoned.tools if self._abandoned is not None else ()
        asked = await self._ask(grace_s) if probed else ()
        uncertain = await self._store.sweep(grace_s=grace_s, limit=limit, probed=probed, asked=asked)
        for event in uncertain:
            count_uncertain(event.tool_name, event.tool_source)
            tell(event, self._events)
        return len(uncertain)

    async def _ask(self, grace_s: float) -> list[str]:
        """Ask about claims of tools that can be asked; references of those nobody could tell of."""
        assert self._abandoned is not None
        taken = await self._store.take_stale(
            self._abandoned.tools, grace_s=grace_s, lease_s=PROBE_LEASE_S, limit=PROBES_AT_ONCE
        )
        settled = await asyncio.gather(*(self._abandoned.settle(call) for call in taken), return_exceptions=True)
        for known in settled:
            if isinstance(known, BaseException):
                raise known  # after all of them have ended; what was not settled is taken again after its lease
        return [call.ref for call, known in zip(taken, settled, strict=True) if not known]

    async def sweep_holds(self, *, limit: int = 100) -> int:
        """Count as spent what a metered read holds that outlived its lease: the vendor may have charged (M1, ADR 0029)."""
        return await self._store.sweep_holds(limit=limit)


def _settled(ref: str, settled: Settlement) -> Conflict:
    how = "confirmed: it happened" if settled.happened else "denied: it did not happen"
    return Conflict(f"call {ref} was settled already: {how}, said {settled.by} at {settled.at:%Y-%m-%d %H:%M:%S %Z}")
