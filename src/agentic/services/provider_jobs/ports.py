"""The store of provider jobs, and what each provider knows of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from agentic.contract.deliveries import DropReason
from agentic.services.provider_jobs.models import (
    Delivered,
    JobMove,
    JobReport,
    NewJob,
    ProviderJob,
    Reserved,
    Settlement,
    SubmittingCall,
    Which,
)
from agentic.services.tools.declarations import Tool


class JobReader(Protocol):
    """Tells where a job stands; all that whoever waits for one needs."""

    async def read(self, organization_id: UUID, job_id: UUID) -> ProviderJob | None:
        """One job; ``None`` when this organization has no such job (T1)."""
        ...


class JobStore(JobReader, Protocol):
    """Every write is one compare-and-set; a job of another organization looks like a missing one."""

    async def submit(self, job: NewJob) -> bool:
        """Reserve a job; ``True`` for whoever did, who alone calls the provider.

        Raises:
            NotFound: neither the job nor its run is there in this organization.
        """
        ...

    async def bind(self, organization_id: UUID, job_id: UUID, provider_job_id: str) -> bool:
        """Note the provider's own id; ``False`` when one is known already.

        Raises:
            Conflict: another job of this provider has that id.
        """
        ...

    async def keep_result(self, organization_id: UUID, job_id: UUID, *, digest: str, body: str) -> None:
        """Keep a body that is too large for the job's row, once; before the move that names it."""
        ...

    async def move(self, organization_id: UUID, job_id: UUID, move: JobMove) -> UUID | None:
        """Make a transition if the job may make it, with the event that a terminal one leaves.

        Returns:
            The event's id, to be sent; ``None`` when nothing ended: the job may not move so, is not there, or goes on.
        """
        ...


class SubmittedJobs(JobReader, Protocol):
    """What the tools of a provider need: a job reserved before its request leaves, and its answer read."""

    async def reserve(
        self, call: SubmittingCall, *, provider: str, contact_refs: Sequence[str] | None = None
    ) -> Reserved:
        """Reserve the job of a call before the provider is asked; what is held for the call is the job's from here on.

        Whoever inserted the row is ``first`` and alone asks the provider; everybody else gets the same job.

        Raises:
            ClaimLost: the claim of the call is not live any more; nothing was reserved.
        """
        ...

    async def submitted_by(self, call: SubmittingCall) -> ProviderJob | None:
        """The job that a call reserved; ``None`` when it reserved none."""
        ...

    async def bind(self, organization_id: UUID, job_id: UUID, provider_job_id: str) -> bool:
        """Note the provider's own id; ``False`` when one is known already.

        Raises:
            Conflict: another job of this provider has that id.
        """
        ...

    async def note(self, organization_id: UUID, job_id: UUID, note: str) -> None:
        """Say why a submit was not confirmed, for whoever finds out."""
        ...

    async def result_of(self, job: ProviderJob) -> Any:
        """The whole result of a job, wherever it is kept; ``None`` when it has none.

        Raises:
            ResultMissing: the job names a body that is not stored.
        """
        ...


class DeliveryStore(Protocol):
    """Where reports of providers arrive."""

    async def deliver(self, provider: str, job_id: UUID, report: JobReport, *, body_hash: str) -> Delivered:
        """All that one report does to the job that a verified delivery's address names, as one transaction.

        The job is found in whichever organization; the same report twice does it once (W2), and what ended a job before writes nothing.

        Raises:
            Conflict: another job of this provider has the provider's id of the report; nothing was written.
        """
        ...

    async def count_drop(self, provider: str, reason: DropReason) -> None:
        """One more delivery that changed nothing, committed when this returns. Holds nothing of it."""
        ...


class SettlingStore(Protocol):
    """Where the cost of ended jobs is settled."""

    async def settle(self, organization_id: UUID, job_id: UUID) -> Settlement:
        """Write the one line, stamp the job and close what was held, in one statement (M1)."""
        ...

    async def settle_failed(self, organization_id: UUID, job_id: UUID) -> bool:
        """Note that it was given up; ``False`` when the job is settled after all, or was given up before."""
        ...


class ReconcilingStore(DeliveryStore, Protocol):
    """Where jobs are found that nothing was heard of."""

    async def nudge_unsettled(self, *, quiet_s: float, limit: int) -> list[UUID]:
        """Ask again for what ended jobs cost; the events to send."""
        ...

    async def take_silent(
        self, provider: str, *, window_s: float, again_s: float, limit: int, only: tuple[UUID, UUID] | None = None
    ) -> list[ProviderJob]:
        """Jobs to ask the provider about, each for one asker.

        Args:
            window_s: seconds after which silence counts.
            again_s: seconds until the same job is asked about again.
            only: organization and id of the one job a person asks about, whatever its window.
        """
        ...

    async def become_unknown(self, provider: str, *, window_s: float) -> list[UUID]:
        """Mark jobs that the provider never gave an id within the window; an operator owns them now."""
        ...


class OperatorStore(JobReader, Protocol):
    """What a person sees and settles."""

    async def find(self, organization_id: UUID, *, which: Which, limit: int) -> list[ProviderJob]:
        """Jobs, the latest first, without their results."""
        ...

    async def drops(self, *, limit: int) -> list[dict[str, Any]]:
        """Deliveries that changed nothing: provider, reason, day and how many."""
        ...

    async def resolve_refused(
        self, organization_id: UUID, job_id: UUID, *, user_id: UUID, evidence: str
    ) -> UUID | None:
        """End a job that the provider never took; the event to send, ``None`` when the person or the job may not."""
        ...

    async def resolve_bound(
        self, organization_id: UUID, job_id: UUID, *, provider_job_id: str, user_id: UUID, evidence: str
    ) -> bool:
        """Note the provider's id that a person found; ``False`` when the person or the job may not."""
        ...


class JobProvider(Protocol):
    """One provider of jobs: how its deliveries are told from anybody else's, and what they say.

    Attributes:
        name: as the path of its callbacks has it, and the rows.
        window_s: seconds after a submit from which silence counts.
        ask_every_s: seconds between two questions about the same job.
    """

    name: str
    window_s: float
    ask_every_s: float

    def verify(self, raw_body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the provider sent exactly these bytes; never raises, whatever the headers hold (T3)."""
        ...

    def read(self, payload: Mapping[str, Any]) -> JobReport:
        """What a verified body says.

        Raises:
            Unreadable: it is not what the provider documents.
        """
        ...

    async def ask(self, provider_job_id: str) -> JobReport | None:
        """How the provider says a job stands now; ``None`` when it is not ready to say.

        Raises:
            AgenticError: it could not be asked, or its answer is not to be understood.
        """
        ...

    def tools(self, jobs: SubmittedJobs) -> Sequence[Tool]:
        """The tools over the provider."""
        ...
