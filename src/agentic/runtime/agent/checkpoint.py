"""The hooks of one segment: what a run does while the framework's loop is inside a turn.

Everything new is written by one append before each model request, and the bounds of the run are checked there, where stopping loses
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID, uuid4, uuid5

from agentic.contract.clock import Clock
from agentic.contract.errors import ApprovalRequired, ClaimLost, LeaseLost, RunEnded
from agentic.contract.principal import RunCeilings
from agentic.contract.results import ToolResult
from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import SegmentAbort, SegmentStop
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.money import before_request
from agentic.runtime.agent.ports import Answer, ModelAttempt, ProposedCall, RunMessage
from agentic.runtime.agent.repeats import Repeats
from agentic.runtime.agent.stops import record_stop
from agentic.runtime.agent.words import Words
from agentic.services.runs.models import Append, Counters, Lease, Proposal, Unpriced
from agentic.services.runs.ports import RunStore
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.services.tools.invoker import ToolInvoker
from agentic.services.tools.outcomes import model_text
from agentic.services.tools.records import SpanRecord, SpanStatus, Trail, UsageRecord


@dataclass(kw_only=True, slots=True)
class Segment:
    """One segment as it runs: the log, what is not yet written, and the identity of its calls."""

    lease: Lease
    definition: AgentDefinition
    ceilings: RunCeilings
    inv: ToolInvocation
    format: str
    log: list[RunMessage]
    stop: SegmentStop
    slice_ends: float
    repeats: Repeats
    words: Words
    provider_failures: int = 0
    """How often in a row the model's provider was down before this segment."""
    unsaved: list[RunMessage] = field(default_factory=list)
    answered: list[UUID] = field(default_factory=list)
    requests: int = 0
    opened: SpanRecord | None = None
    """The segment's own span, closed by whichever way out is taken."""
    fault: str | None = None
    """Class of the fault that ends the segment."""
    unpriced: Unpriced | None = None
    """A request of this segment that nobody can count; found by any append of it."""

    @property
    def trail(self) -> Trail:
        return self.inv.trail

    @property
    def turn(self) -> int:
        """Number of the current turn: how many assistant messages the log holds."""
        return sum(message.role == "assistant" for message in self.log)

    @property
    def reads_of_turn(self) -> str:
        """Names the reads of the current turn, which run side by side."""
        return str(uuid5(self.inv.run_id, f"reads of turn {self.turn}"))

    def add(self, messages: Sequence[RunMessage]) -> None:
        """Take messages into the log; those it holds already are left out."""
        known = {message.id for message in self.log}
        fresh = [message for message in messages if message.id not in known]
        self.log.extend(fresh)
        self.unsaved.extend(fresh)
        for message in fresh:
            self.inv = replace(self.inv, context_trust=self.inv.context_trust.lowered_by(message.trust))

    async def collect(self, *, proposals: Sequence[Proposal] = ()) -> Append:
        """Everything that waits to be written, once; behind the model's words that are being told."""
        await self.words.settle()
        return self.take(proposals=proposals)

    def take(self, *, proposals: Sequence[Proposal] = ()) -> Append:
        """The same, without the wait."""
        append = Append(
            format=self.format,
            messages=tuple(self.unsaved),
            proposals=tuple(proposals),
            answered=tuple(self.answered),
            breakers=self.repeats.take(),
            words=self.words.take(),
            trail=self.trail.take(),
        )
        self.unsaved, self.answered = [], []
        return append

    def put_back(self, append: Append) -> None:
        """Undo a ``take`` whose write did not happen. Words are not told twice."""
        self.unsaved[:0] = append.messages
        self.answered[:0] = append.answered
        if append.breakers is not None:
            self.repeats.put_back()
        self.trail.put_back(append.trail)


class Draining:
    """Whether this worker was asked to stop: it finishes the call in hand, commits, and releases its runs."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self) -> None:
        self.asked = True


class SegmentHooks:
    """Implements ``TurnHooks`` for one segment."""

    def __init__(
        self, segment: Segment, *, store: RunStore, invoker: ToolInvoker, clock: Clock, draining: Draining
    ) -> None:
        self._segment = segment
        self._store = store
        self._invoker = invoker
        self._clock = clock
        self._draining = draining

    async def before_request(self, new: Sequence[RunMessage]) -> bool:
        segment = self._segment
        segment.stop.check()
        segment.add(new)
        segment.repeats.settle()
        segment.trail.model_requests += 1
        counters = await self.save()
        try:
            self._check(counters)
        except SegmentAbort:
            segment.trail.model_requests -= 1  # counted, and not made after all
            raise
        segment.requests += 1
        segment.words.begin()
        return segment.repeats.must_answer

    async def answered(self, assistant: RunMessage, calls: Sequence[ProposedCall]) -> None:
        segment = self._segment
        segment.add([assistant])
        segment.repeats.proposed(segment.turn, calls)
        await self.save()

    async def read(self, call: ProposedCall) -> Answer:
        segment = self._segment
        try:
            result = await self._invoker.invoke(tool_call(call, parallel_group=segment.reads_of_turn), segment.inv)
        except ApprovalRequired as error:
            raise segment.stop.record("failed", "read_tool_needs_approval", error) from error
        except (LeaseLost, ClaimLost) as error:
            raise segment.stop.record("lease_lost", "lease_lost", error) from error
        except RunEnded as error:
            raise segment.stop.record(
                "cancelled" if error.status == "cancelled" else "ceiling", error.code, error
            ) from error
        stopped = record_stop(segment.stop, call.tool, result)
        if stopped is not None:
            raise stopped
        segment.repeats.answered(call, result, segment.trail.evidence.pop(call.model_call_id, None))
        return answer_of(segment.inv, call, result)

    def said(self, text: str) -> None:
        self._segment.words.said(text)

    def attempted(self, attempt: ModelAttempt) -> None:
        segment = self._segment
        if not attempt.ok:
            segment.words.give_up()
        span_id = uuid4()
        answer_only = segment.repeats.must_answer
        segment.trail.spans.append(_llm_span(span_id, segment.inv.parent_span_id, attempt, answer_only=answer_only))
        segment.trail.usage.append(_llm_usage(span_id, attempt))

    async def save(self, *, proposals: Sequence[Proposal] = ()) -> Counters:
        """Write everything that waits. Raises the segment's stop when the lease is lost."""
        append = await self._segment.collect(proposals=proposals)
        try:
            counters = await self._store.append(self._segment.lease, append)
        except Exception:
            self._segment.put_back(append)
            raise
        if counters is None:
            self._segment.put_back(append)
            raise self._segment.stop.record("lease_lost", "lease_lost")
        self._segment.unpriced = counters.unpriced or self._segment.unpriced
        return counters

    def _check(self, counters: Counters) -> None:
        segment = self._segment
        ceilings = segment.ceilings
        if counters.cancelled:
            raise segment.stop.record("cancelled", "cancelled")
        spent = before_request(counters, segment.unpriced)
        if spent is not None:
            raise segment.stop.record("failed" if spent.status == "failed" else "ceiling", spent.code, spent)
        if ceilings.max_model_requests is not None and counters.model_requests > ceilings.max_model_requests:
            raise segment.stop.record("ceiling", "limit_reached")
        if ceilings.max_run_duration_s is not None and counters.active_ms > ceilings.max_run_duration_s * 1000:
            raise segment.stop.record("ceiling", "limit_reached")
        over = (
            segment.requests >= segment.definition.max_requests_per_segment
            or self._clock.monotonic() > segment.slice_ends
        )
        if over or self._draining.asked:
            raise segment.stop.record("slice", "slice")


def tool_call(call: ProposedCall, *, proposal_id: UUID | None = None, parallel_group: str | None = None) -> ToolCall:
    """A proposed call as the invoker takes it."""
    return ToolCall(
        tool=call.tool,
        arguments_text=call.arguments_text,
        wire_call_id=call.model_call_id,
        proposal_id=proposal_id,
        parallel_group=parallel_group,
        fault=call.fault,
    )


def answer_of(inv: ToolInvocation, call: ProposedCall, result: ToolResult) -> Answer:
    """What the model reads for a result, and how far it may be trusted."""
    frozen = inv.tools.get(call.tool)
    trust = frozen.spec.output_trust if frozen is not None and result.ok else Trust.INTERNAL
    said = result.error.said if result.error is not None else None
    if result.meta.untrusted or (said is not None and said.by == "remote"):
        trust = Trust.EXTERNAL
    if result.meta.trust is not None and (result.ok or (said is not None and said.by == "domain")):
        trust = trust.lowered_by(result.meta.trust)
    return Answer(text=model_text(call.tool, result), trust=trust)


def _llm_span(span_id: UUID, parent_id: UUID | None, attempt: ModelAttempt, *, answer_only: bool) -> SpanRecord:
    return SpanRecord(
        id=span_id,
        parent_id=parent_id,
        kind="llm",
        name=attempt.model,
        started_at=attempt.started_at,
        ended_at=attempt.started_at + timedelta(seconds=attempt.duration_s),
        status=SpanStatus.OK if attempt.ok else SpanStatus.ERROR,
        code=None if attempt.ok else "model_error",
        attributes={
            "provider": attempt.provider,
            "input_tokens": attempt.input_tokens,
            "output_tokens": attempt.output_tokens,
            **({"error": attempt.error} if attempt.error else {}),
            **({"answer_only": True} if answer_only else {}),
        },
    )


def _llm_usage(span_id: UUID, attempt: ModelAttempt) -> UsageRecord:
    return UsageRecord(
        id=uuid4(),
        kind="model",
        provider=attempt.provider,
        item=attempt.model,
        quantity=Decimal(attempt.input_tokens + attempt.output_tokens),
        unit="token",
        cost=attempt.cost,
        span_id=span_id,
        input_tokens=attempt.input_tokens,
        output_tokens=attempt.output_tokens,
        cached_tokens=attempt.cached_tokens,
        reasoning_tokens=attempt.reasoning_tokens,
        ok=attempt.ok,
        error=attempt.error,
    )
