"""The meter of the invoker: holds a call's bound before it runs, and puts what it cost in the bound's place after (M2, M4, ADR 0029).

If the process dies between the two, the hold stands. A claim's hold goes with the claim, by whoever takes the claim over, sweeps
it or settles it as an operator; a read's hold ends with its lease and then counts as spent, for the vendor may have charged.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal

import sentry_sdk

from agentic.contract.errors import ClaimLost, LeaseLost, ProgramFault, StorageUnavailable
from agentic.contract.results import ErrorCode, ToolResult, ToolResultMeta
from agentic.services.tools.attempt import Claimed, Prepared, Refused
from agentic.services.tools.context import ReportedUsage
from agentic.services.tools.counting import Counted, Line, MeterFault, at_the_bound, counted, reported
from agentic.services.tools.keys import read_usage_id, usage_id
from agentic.services.tools.metering import Hold, OverBudget, Pricing
from agentic.services.tools.outcomes import refusal
from agentic.services.tools.ports import Claim, ClaimRequest, MeterLedger
from agentic.services.tools.records import UsageRecord

_ATTEMPTS = 3
_log = logging.getLogger(__name__)


class Silence(StrEnum):
    """What it means that a metered call reported nothing."""

    FAULT = "fault"
    """The handler returned: it forgot, and its answer is kept back (M4)."""
    SPENT = "spent"
    """Nobody can tell; the bound counts."""
    FREE = "free"
    """The service refused, or nothing had left: nothing was charged (M1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A call's answer after the meter has seen it, its lines, and what becomes of its hold."""

    result: ToolResult
    usage: tuple[UsageRecord, ...] = ()
    hold: Literal["settled", "released"] | None = None
    withheld: bool = False
    """The answer is kept back, and so is everything beside it."""


class Meter:
    """One per invoker. Without a ledger or prices, every metered call is refused as a fault of the deployment (D4)."""

    def __init__(self, *, ledger: MeterLedger | None = None, pricing: Pricing | None = None) -> None:
        self._ledger = ledger
        self._pricing = pricing
        self._told: set[tuple[str, MeterFault]] = set()

    # -- before -------------------------------------------------------------------------------------------------------

    async def claim(self, call: Prepared, request: ClaimRequest) -> Claim | None:
        """COMMIT 1 of a metered call, with its bound held; ``None`` as the ledger's own claim says it.

        Raises:
            Refused: the tree has no room for the bound, or there is no meter; nothing was claimed.
        """
        ledger, _ = self._wired(call)
        claim = await ledger.claim_metered(request, bound=_bound(call), inv=call.at.inv)
        if isinstance(claim, OverBudget):
            raise over_budget()
        return claim

    async def hold_read(self, call: Prepared, *, lease_s: float) -> Hold:
        """Hold the bound of a read before its handler starts.

        Args:
            lease_s: how long the call may take; a hold that outlives it counts as spent.

        Raises:
            Refused: the tree has no room for the bound, or there is no meter.
            LeaseLost: the run is not ours any more, or is being cancelled.
            StorageUnavailable: nothing ran.
        """
        ledger, _ = self._wired(call)
        at = call.at
        for left in reversed(range(_ATTEMPTS)):
            try:
                hold = await ledger.hold_read(
                    tool=call.spec.name, span_id=at.span_id, bound=_bound(call), lease_s=lease_s, inv=at.inv
                )
            except StorageUnavailable:
                if not left:
                    raise
                continue
            if isinstance(hold, OverBudget):
                raise over_budget()
            if hold is not None:
                return hold
            break
        raise LeaseLost(f"run {at.inv.run_id} is led by another worker, or is being cancelled")

    # -- after --------------------------------------------------------------------------------------------------------

    async def of_effect(
        self,
        claimed: Claimed,
        result: ToolResult,
        reports: Sequence[ReportedUsage],
        *,
        silence: Silence,
        with_job: bool = False,
    ) -> Account:
        """What COMMIT 2 writes for a claimed call.

        Args:
            with_job: a provider's job is charged in its place and holds its money; what a later attempt held beside is released.
        """
        call, claim = claimed.call, claimed.claim
        line = Line(tool=call.spec.name, span_id=claim.span_id, id=lambda number: usage_id(claim, number))
        if not call.spec.metered:
            return _named(result, reported(reports, line))
        if with_job:
            return Account(result=result, hold="released")
        return self._account(call, result, reports, line, hold=await self._hold_of(call, claim), silence=silence)

    async def end_read(
        self, call: Prepared, result: ToolResult, reports: Sequence[ReportedUsage], *, hold: Hold, silence: Silence
    ) -> Account:
        """Commit what a metered read cost, before its answer is anybody's (M4).

        Raises:
            StorageUnavailable: it is not counted, so there is no answer; the hold stands until it counts as spent.
            ClaimLost: the hold's lease was over, and it has been counted as spent.
        """
        ledger, _ = self._wired(call)
        span_id = call.at.span_id
        line = Line(tool=call.spec.name, span_id=span_id, id=lambda number: read_usage_id(span_id, number))
        account = self._account(call, result, reports, line, hold=hold, silence=silence)
        state = account.hold or "released"
        for left in reversed(range(_ATTEMPTS)):
            try:
                ended = await ledger.end_read(
                    span_id=span_id, state=state, usage=account.usage, organization_id=call.at.inv.organization_id
                )
            except StorageUnavailable:
                if not left:
                    raise
                continue
            if not ended:
                raise ClaimLost(f"{call.spec.name}: the money held for this call has been counted as spent without it")
            break
        return account

    def of_read(self, call: Prepared, result: ToolResult, reports: Sequence[ReportedUsage]) -> Account:
        """The lines of a read that is not metered; they go with the segment."""
        span_id = call.at.span_id
        line = Line(tool=call.spec.name, span_id=span_id, id=lambda number: read_usage_id(span_id, number))
        return _named(result, reported(reports, line))

    def _account(
        self,
        call: Prepared,
        result: ToolResult,
        reports: Sequence[ReportedUsage],
        line: Line,
        *,
        hold: Hold,
        silence: Silence,
    ) -> Account:
        if not reports and silence is Silence.FREE:
            return Account(result=result, hold="released")
        if silence is Silence.SPENT and not reports:
            unknown = at_the_bound(line, hold.bound, error="no_report", ok=result.ok)
            return _named(result, (unknown,), hold="settled")
        count = self._counted(reports, line, hold)
        if count.fault is not None:
            self._tell(call.spec.name, count.fault)
        if count.is_known:
            return _named(result, count.lines, hold="settled")
        return Account(result=_kept_back(call, result, count), usage=count.lines, hold="settled", withheld=True)

    def _counted(self, reports: Sequence[ReportedUsage], line: Line, hold: Hold) -> Counted:
        if self._pricing is None:
            return Counted(lines=(at_the_bound(line, hold.bound, error="no_price"),), fault=MeterFault.NO_METER)
        return counted(reports, line, hold=hold, pricing=self._pricing)

    async def _hold_of(self, call: Prepared, claim: Claim) -> Hold:
        """The hold of a claim; one found by its row, of a dead worker, comes without prices, which are read anew."""
        if claim.hold is not None:
            return claim.hold
        bound = _bound(call)
        if self._ledger is None:  # the effect has happened all the same: it is counted at the bound
            return Hold(bound=bound, prices=(), at=datetime.max.replace(tzinfo=UTC))
        return await self._ledger.hold_of(tool=call.spec.name, bound=bound, organization_id=call.at.inv.organization_id)

    # -- faults -------------------------------------------------------------------------------------------------------

    def _wired(self, call: Prepared) -> tuple[MeterLedger, Pricing]:
        if self._ledger is None or self._pricing is None:
            self._tell(call.spec.name, MeterFault.NO_METER)
            raise Refused(ErrorCode.INTERNAL_ERROR, stop="fault")
        return self._ledger, self._pricing

    def _tell(self, tool: str, fault: MeterFault) -> None:
        """To the log each time; to Sentry once for each tool and cause in the life of this invoker, so that a fan-out hides nothing.

        A warning, because Sentry's own log handler would make an event of every error.
        """
        message = f"the meter cannot count the metered tool {tool} as declared: {fault}; {fault.remedy}"
        _log.warning(message)
        if (tool, fault) not in self._told:
            self._told.add((tool, fault))
            sentry_sdk.capture_message(message, level="error")


def over_budget() -> Refused:
    """The refusal of a call whose bound does not fit into what the run's tree has left."""
    return Refused(ErrorCode.BUDGET_EXHAUSTED, stop="budget_exhausted")


def _bound(call: Prepared) -> Decimal:
    bound = call.spec.cost_bound
    if bound is None:
        raise ProgramFault(f"{call.spec.name} is metered and declares no cost_bound")
    return bound


def _named(
    result: ToolResult, usage: tuple[UsageRecord, ...], *, hold: Literal["settled", "released"] | None = None
) -> Account:
    """An account whose answer names its first line."""
    if usage:
        result = result.model_copy(update={"meta": result.meta.model_copy(update={"usage_id": usage[0].id})})
    return Account(result=result, usage=usage, hold=hold)


def _kept_back(call: Prepared, result: ToolResult, count: Counted) -> ToolResult:
    """No data of a charge the meter cannot count. An effect that happened stays one that happened (J4)."""
    meta = ToolResultMeta(
        trust=result.meta.trust, usage_id=count.lines[0].id, unreadable=result.ok and call.spec.journaled
    )
    if not result.ok:
        error = result.error.model_copy(update={"said": None}) if result.error is not None else None
        return ToolResult(ok=False, error=error, meta=meta, stop="fault")
    if call.spec.journaled:
        return ToolResult(ok=True, meta=meta, stop="fault")
    return refusal(ErrorCode.INTERNAL_ERROR).model_copy(update={"meta": meta, "stop": "fault"})
