"""What a handler sees of its call: no store, no registry, no policy, no other tool."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from agentic.contract.clock import Clock
from agentic.contract.errors import ProgramFault
from agentic.contract.json_types import JsonValue
from agentic.contract.plain import plain
from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.tools.artifacts import Saved
from agentic.services.tools.connections import Connection
from agentic.services.tools.records import JobWait


def answer_reserve_s(timeout_s: float) -> float:
    """How long before the invoker gives up a handler must have answered: a twentieth of its time, at most half a second."""
    return min(0.5, timeout_s / 20)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedUsage:
    """What one call cost, as the handler learned it. The invoker writes the row (M1)."""

    quantity: Decimal
    unit: str
    """What is counted: ``email``, ``credit``, ``request``."""
    cost: Decimal | None = None
    """Money, when the vendor reported it."""
    provider: str | None = None
    estimated: bool = False
    """Worked out by the handler, because the vendor did not say what it charged."""


_MAX_NAME_CHARS = 200


def _number(value: Decimal | int) -> Decimal:
    try:
        return Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return Decimal("NaN")


@dataclass(kw_only=True, slots=True)
class CallContext:
    """Handed to ``execute``. Everything a handler may know about the call it serves.

    Attributes:
        idempotency_key: the vendor key of this logical call; the same on every attempt within an epoch (J7). ``None`` for a read.
        epoch: raised only after a definite refusal or an operator's denial; the key follows it. ``None`` for a read.
        attempt: how often this call was claimed in its epoch, from 1.
        timeout_s: seconds the whole call was given, deciding and claiming included; the declared value is not to be read instead.
        deadline: monotonic second by which the handler must have answered. It is cancelled a moment later, so that a client
            bounded by it can still say what surely happened.
        lease_expires_at: database time at which another worker may take the claim over; ``None`` for a read.
        before_first_byte: await it just before the effect can leave the process; the governed HTTP client does.
        cancelled: set once the renewal of the run's lease sees that a person cancelled the run. A handler that waits for something
            before its effect may give up then and raise ``RetryableUpstreamError``; after it, it goes on to its end.
    """

    principal: Principal
    run_id: UUID
    tool: str
    idempotency_key: str | None
    attempt: int
    timeout_s: float
    deadline: float
    clock: Clock
    before_first_byte: Callable[[], Awaitable[None]]
    epoch: int | None = None
    lease_expires_at: datetime | None = None
    account: Connection | None = None
    """See ``connection``."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Credential values of this call; the boundary removes them from whatever comes back (B2)."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    usage: list[ReportedUsage] = field(default_factory=list)
    evidence: str | None = None
    """Digest of what this call observed; see ``observed``."""
    output_trust: Trust = Trust.PLATFORM
    """The lowest label the handler gave its answer; see ``lower_trust``."""
    source_trust: Trust = Trust.EXTERNAL
    """How far the texts of the arguments may be believed: a model can write nothing better than the worst it has read, anybody else
    nothing better than their own label or what the run holds. For handlers that keep a text and give it back later."""
    job_wait: JobWait | None = None
    """See ``waits_for_job``."""
    with_job: bool = False
    """See ``costs_with_job``."""
    saved: Saved = field(default_factory=Saved)
    """What ``save_artifact`` took in this attempt."""
    facts: Callable[[str], Awaitable[JsonValue]] | None = None
    """See ``fact``."""

    @property
    def organization_id(self) -> UUID:
        """The tenant of the call."""
        return self.principal.organization_id

    @property
    def connection(self) -> Connection:
        """The account this call uses (docs/connections.md).

        Raises:
            ProgramFault: the tool declares no ``connection``, or this is a fact, which is found out before there is one. A preview has
                its names; whatever asks it for the credential raises this.
        """
        if self.account is None:
            raise ProgramFault(
                f"{self.tool} has no connection here; declare one, and use it in the handler or the probe"
            )
        return self.account

    async def fact(self, name: str) -> JsonValue:
        """For previews: a fact of this call that the deployment can find out (docs/policy.md); ``None`` when it cannot tell.

        Raises:
            ProgramFault: this is no preview. What a handler needs to know of its call is in the arguments.
        """
        if self.facts is None:
            raise ProgramFault(f"{self.tool} asks for the fact {name} outside its preview")
        return await self.facts(name)

    @property
    def remaining_s(self) -> float:
        """Seconds left until the deadline, never negative."""
        return max(0.0, self.deadline - self.clock.monotonic())

    def report_usage(
        self,
        quantity: Decimal | int,
        unit: str,
        *,
        cost: Decimal | None = None,
        provider: str | None = None,
        estimated: bool = False,
    ) -> None:
        """Say what this call cost; billed once with the call's answer, however often it was attempted (M1).

        Never raises: the vendor has answered. What is no number is kept as one that cannot be counted, and the meter says so.

        Args:
            quantity: how many units; exact, so no float.
            unit: what is counted, at most 200 characters.
            cost: US dollars, when the vendor named the money; ``None`` leaves it to the prices.
            provider: whose service it is, at most 200 characters; ``None`` is the tool's domain.
            estimated: the vendor did not say; the handler worked it out.
        """
        self.usage.append(
            ReportedUsage(
                quantity=_number(quantity),
                unit=str(unit)[:_MAX_NAME_CHARS],
                cost=None if cost is None else _number(cost),
                provider=None if provider is None else str(provider)[:_MAX_NAME_CHARS],
                estimated=estimated,
            )
        )

    def costs_with_job(self) -> None:
        """Say that a provider's job, which holds the money of this call now, is charged when it ends (M1).

        The call itself has no line of usage then. Said only once the job's row is there.
        """
        self.with_job = True

    def waits_for_job(self, job_id: UUID, *, within_s: float) -> None:
        """Say that this answer tells of a job that has not ended, and that a better one comes with its end.

        The run of an agent then parks instead of giving the answer, once a job, and makes the call again when the job has ended or the
        time is over. It holds for reads that are declared ``parallel_safe=False``; everywhere else the answer is given as it is.

        Args:
            within_s: seconds after which the call is made again, whatever became of the job.
        """
        self.job_wait = JobWait(job_id=job_id, within_s=within_s)

    def lower_trust(self, trust: Trust) -> None:
        """Say that this answer holds text of less trust than the tool declares, such as a page somebody outside wrote.

        The answer gets the lowest of the tool's label and every label given here, and so do the run and what is kept of the
        answer (ADR 0012). Nothing raises it again.
        """
        self.output_trust = self.output_trust.lowered_by(trust)

    def save_artifact(self, body: bytes, media_type: str) -> UUID:
        """Keep bytes beside the answer for people, such as a report a call made; no model can read them back (B1).

        They are stored with the call's answer, without the secrets of the call and under the answer's trust. A call that is
        refused, fails or is made again leaves nothing.

        Args:
            body: at most 8 MiB; a call saves at most 16.
            media_type: lower case and without parameters, such as ``text/csv``.

        Returns:
            The artifact's id, which the answer may name.

        Raises:
            ValueError: too large, too many, or not a media type.
        """
        return self.saved.add(body, media_type)

    def observed(self, what: JsonValue) -> None:
        """Say what this call saw, so that looking again at something that changed is no loop (ADR 0028).

        The run compares digests of it between identical calls; five that see the same, or say nothing, end the run. No model
        reads it, and neither it nor its digest is stored with the result. The last word of a call counts.

        Args:
            what: the state that was looked at, such as a page's address and text; never the call's arguments, and nothing that
                differs at every look by itself, such as a time.
        """
        text = json.dumps(plain(what), sort_keys=True)  # plain: whatever a page or a row holds has a digest
        self.evidence = hashlib.sha256(text.encode()).hexdigest()[:32]
