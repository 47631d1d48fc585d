"""Leading a run for one segment: take the lease, do what the row still needs, park, release or finish (docs/architecture.md).

Safe to run again, early, late or twice: whoever finds nothing due ends quietly. Every way out is one fenced write; where this process
dies instead, the lease runs out and the next leader goes on from the stored messages and proposals.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never
from uuid import UUID, uuid4

from agentic.contract.clock import Clock
from agentic.contract.errors import ClaimInFlight, ClaimLost, LeaseLost, ProgramFault, RunEnded, StorageUnavailable
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.tool_patterns import names_remote
from agentic.runtime.agent.aborts import SegmentAbort, SegmentStop
from agentic.runtime.agent.checkpoint import Draining, Segment, SegmentHooks
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.drain import drain
from agentic.runtime.agent.endings import Advanced, Endings, Flush, ended_by, report
from agentic.runtime.agent.lease import kept
from agentic.runtime.agent.money import before_segment
from agentic.runtime.agent.ports import AgentLoop, ProposedCall, Turn, TurnCompleted, TurnFailed, TurnPaused
from agentic.runtime.agent.repeats import Repeats
from agentic.runtime.agent.timings import Timings, provider_wait_s
from agentic.runtime.agent.words import Words
from agentic.services.runs.events import WordsStore
from agentic.services.runs.models import LedRun, Proposal, RunEnd
from agentic.services.runs.ports import RunStore
from agentic.services.tools.arriving import Arrivals, NothingArrives
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.contracts import missing_contract
from agentic.services.tools.invoker import ToolInvoker
from agentic.services.tools.models import FrozenTool, Mode, ToolSpec
from agentic.services.tools.records import SpanRecord

_log = logging.getLogger(__name__)


class Advance:
    """Leads runs."""

    def __init__(
        self,
        *,
        store: RunStore,
        invoker: ToolInvoker,
        loop: AgentLoop,
        clock: Clock,
        flush: Flush,
        timings: Timings | None = None,
        environment: Literal["live", "frozen"] = "live",
        words: WordsStore | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._store = store
        self._invoker = invoker
        self._loop = loop
        self._clock = clock
        self._timings = timings or Timings()
        self._endings = Endings(store=store, clock=clock, flush=flush, timings=self._timings, format=loop.format)
        self._environment = environment
        self._words = words
        self._arrivals: Arrivals = arrivals or NothingArrives()
        self.draining = Draining()

    async def advance(self, organization_id: UUID, run_id: UUID) -> Advanced:
        """Lead the run for one segment, if it is due and nobody else leads it.

        Raises:
            StorageUnavailable: the database went away; the lease runs out by itself.
        """
        led = await self._store.take(organization_id, run_id, lease_s=self._timings.lease_s)
        if led is None:
            return Advanced(state="idle")
        stop = SegmentStop()
        task = asyncio.create_task(self._lead(led, stop))
        async with kept(
            led.lease, store=self._store, stop=stop, timings=self._timings, clock=self._clock, segment=task
        ):
            try:
                return await task
            except asyncio.CancelledError:
                if stop.lost:
                    return Advanced(state="lost")
                task.cancel()
                await asyncio.wait({task})  # an answer in flight is stored before the lease is let go
                raise

    async def _lead(self, led: LedRun, stop: SegmentStop) -> Advanced:
        try:
            segment = await self._open(led, stop)
        except StorageUnavailable:
            raise
        except Exception as fault:
            return await self._endings.unopened(led, stop, fault, over=self._over(led))
        try:
            over = self._over(led)
            if over is not None:
                return await self._endings.finish(segment, over)
            spent = before_segment(led)
            if spent is not None:
                return await self._endings.finish(segment, ended_by(spent), said=str(spent))
            return await self._run(segment)
        except LeaseLost:
            return Advanced(state="lost")
        except ClaimLost:
            # nobody else leads: the journal answers the next leader
            return await self._endings.release(segment, orderly=False)
        except ClaimInFlight as busy:
            return await self._endings.release(segment, due_at=busy.due_at)
        except RunEnded as ended:
            return await self._endings.finish(segment, ended_by(ended), said=str(ended))
        except SegmentAbort as abort:
            return await self._endings.aborted(segment, led, abort)
        except StorageUnavailable:
            raise
        except ProgramFault as fault:
            report(fault, led)
            return await self._endings.finish(segment, RunEnd(state="failed", error_code="program_fault"), fault=fault)
        except Exception as fault:
            report(fault, led)
            return await self._endings.faulted(segment, led, fault)
        finally:
            await segment.words.settle()

    async def _open(self, led: LedRun, stop: SegmentStop) -> Segment:
        definition = AgentDefinition.model_validate(dict(led.definition))
        tools = await self._tools(led.tools)
        names = [tool.spec.name for tool in tools]
        if names_remote(names):
            await self._arrivals.refresh(led.lease.organization_id)
            self._arrivals.warm(led.lease.organization_id, run_id=led.lease.run_id, tools=names)
        inv = ToolInvocation(
            principal=Principal(
                organization_id=led.lease.organization_id, user_id=led.user_id, scopes=definition.tools
            ),
            run_id=led.lease.run_id,
            root_run_id=led.root_run_id,
            definition=led.definition_name,
            fence=led.lease.fence,
            tools={tool.spec.name: tool for tool in tools},
            context_trust=led.context_trust,
            environment=self._environment,
            parent_span_id=led.segment_id,
            cancelled=stop.cancelled,
        )
        segment = Segment(
            lease=led.lease,
            definition=definition,
            ceilings=RunCeilings.model_validate(dict(led.ceilings)),
            inv=inv,
            format=self._loop.format,
            log=await self._store.messages(led.lease, format=self._loop.format),
            stop=stop,
            slice_ends=self._clock.monotonic() + self._timings.slice_s,
            repeats=Repeats(led.breakers),
            words=Words(self._words, led.lease),
            provider_failures=led.provider_failures,
        )
        segment.opened = SpanRecord(
            id=led.segment_id,
            parent_id=None,
            kind="segment",
            name=f"segment {led.lease.fence}",
            started_at=led.leased_at,
        )
        return segment

    async def _tools(self, listed: Sequence[Mapping[str, object]]) -> list[FrozenTool]:
        specs = await self._store.contracts([str(tool["contract_hash"]) for tool in listed])
        return [_frozen(tool, specs) for tool in listed]

    def _over(self, led: LedRun) -> RunEnd | None:
        if led.cancelled:
            return RunEnd(state="cancelled")
        if led.overdue:
            return RunEnd(state="failed", error_code="deadline")
        if led.attempts_without_progress > self._timings.max_attempts_without_progress:
            return RunEnd(state="failed", error_code="crash_loop")
        return None

    async def _run(self, segment: Segment) -> Advanced:
        """Drain what is open, ask the model, and again, until something ends the segment."""
        hooks = SegmentHooks(
            segment, store=self._store, invoker=self._invoker, clock=self._clock, draining=self.draining
        )
        tools = list(segment.inv.tools.values())
        turns_before = segment.turn
        while True:
            calls = self._loop.open_calls(segment.log, tools)
            if calls:
                proposals = await self._stored(segment, hooks, calls)
                drained = await drain(
                    segment, proposals, loop=self._loop, invoker=self._invoker, draining=self.draining
                )
                if drained.questions:
                    return await self._endings.park(segment, drained.questions)
                if drained.job is not None:
                    return await self._endings.park_on_job(segment, drained.job)
            end = await self._loop.turn(
                Turn(
                    definition=segment.definition,
                    tools=tools,
                    messages=tuple(segment.log),
                    leave=segment.stop.leave,
                ),
                hooks,
            )
            match end:
                case TurnPaused():
                    segment.add(end.new)
                    segment.repeats.settle()
                case TurnCompleted():
                    segment.add(end.new)
                    partial = "answer_cut_off" if end.cut_off else None
                    return await self._endings.finish(
                        segment, RunEnd(state="succeeded", answer=end.text, partial_reason=partial)
                    )
                case TurnFailed(code="model_unavailable"):
                    segment.trail.model_requests -= 1  # not taken by the provider: it counts for nothing
                    failures = segment.provider_failures if segment.turn == turns_before else 0
                    wait_s = provider_wait_s(self._timings, failures, asked_s=end.retry_after_s)
                    return await self._endings.release(segment, due_in_s=wait_s, provider_failures=failures + 1)
                case TurnFailed():
                    return await self._endings.finish(
                        segment, RunEnd(state="failed", error_code=end.code, answer=None), said=end.message
                    )
                case _ as never:
                    assert_never(never)

    async def _stored(self, segment: Segment, hooks: SegmentHooks, calls: Sequence[ProposedCall]) -> list[Proposal]:
        """The proposals of these open calls: those stored already, else stored now, before anything of them runs (J8)."""
        turn = segment.turn
        stored = {
            item.call.model_call_id: item for item in await self._store.proposals(segment.lease) if item.turn == turn
        }
        if all(call.model_call_id in stored for call in calls):
            return [Proposal(id=stored[call.model_call_id].id, turn=turn, call=call) for call in calls]
        segment.repeats.proposed(turn, calls)
        proposals = [Proposal(id=uuid4(), turn=turn, call=call) for call in calls]
        await hooks.save(proposals=proposals)
        return proposals


def _frozen(listed: Mapping[str, object], specs: Mapping[str, ToolSpec]) -> FrozenTool:
    contract_hash = str(listed["contract_hash"])
    spec = specs.get(contract_hash) or missing_contract(contract_hash=contract_hash, name=str(listed["name"]))
    return FrozenTool(spec=spec, mode=Mode(str(listed["mode"])))
