"""Holds and lines beside a dictionary: any order of claims, reads, ends, lost leases, late workers, sweeps and operators (M1, M2).

After each step the totals are the sums of the rows, what is held is not settled, and one logical operation has one line.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentic.contract.principal import Principal
from agentic.contract.trust import Trust
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.keys import call_key, read_usage_id, usage_id
from agentic.services.tools.metering import OverBudget
from agentic.services.tools.ports import CallEnd, Claim, ClaimRequest, JournalRow
from agentic.services.tools.records import DecisionRecord, SpanRecord, SpanStatus, UsageRecord
from agentic.storage.call_ledger import PostgresCallLedger
from agentic.storage.meter_ledger import PostgresMeterLedger
from agentic.testing import Harness, Say, harness
from core_world import World, execute, journal
from money import FREE, ceiling, holds, lines

T = TypeVar("T")
BOUND, LIMIT = Decimal("3.00"), Decimal("10.00")
PAID = World().write("paid.once", metered=True, cost_bound=str(BOUND)).spec
LOOK = "paid.look"
SLOTS = 3
CLAIM = {
    "free": ("claim",) * 6,
    "led": ("settle", "release", "hold", "give up", "give up", "claim lapses", "claim lapses", "claim"),
    "stale": ("claim", "claim", "settle", "release"),
    "uncertain": ("confirm", "confirm", "deny", "deny", "claim"),
    "completed": ("claim", "settle", "deny"),
}
READ = {
    "none": ("read", "read"),
    "held": ("settle read", "release read", "read lapses", "read lapses", "read"),
    "lapsed": ("sweep", "sweep", "sweep", "settle read"),
    "ended": ("read", "read", "settle read", "release read", "sweep"),
}
"""What may happen next, by how a claim and a slot's last read stand; the rest would find nothing to do or to refuse."""
STEP = st.tuples(
    st.integers(0, 99),
    st.integers(0, SLOTS - 1),
    st.sampled_from(["0", "0.10", "1.00", "3.00", "3.40"]),
    st.integers(0, 1),
)


@dataclass(kw_only=True)
class Row:
    """What the model knows of a claim."""

    claim: Claim
    state: Literal["processing", "uncertain", "completed"] = "processing"
    leased: bool = True

    @property
    def stands(self) -> str:
        """The state, with the lease."""
        return self.state if self.state != "processing" else "led" if self.leased else "stale"


@dataclass(kw_only=True)
class Read:
    """What the model knows of a read."""

    span_id: UUID
    state: Literal["held", "settled", "released"] = "held"
    lapsed: bool = False
    estimated: bool = False

    @property
    def stands(self) -> str:
        """The state, with the lease."""
        return "ended" if self.state != "held" else "lapsed" if self.lapsed else "held"


@dataclass(kw_only=True)
class Books:
    """What must stand: what is held by what holds it, and what each line cost."""

    held: dict[str, Decimal] = field(default_factory=dict)
    lines: dict[UUID, Decimal] = field(default_factory=dict)
    above: Decimal = Decimal(0)
    """What reports said beyond their bounds."""

    @property
    def total(self) -> Decimal:
        return sum(self.held.values(), Decimal(0)) + sum(self.lines.values(), Decimal(0))

    @property
    def has_room(self) -> bool:
        return self.total < LIMIT and self.total + BOUND <= LIMIT

    def settle(self, ref: str, line: UUID, cost: Decimal) -> None:
        del self.held[ref]
        assert line not in self.lines
        self.lines[line] = cost
        self.above += max(Decimal(0), cost - BOUND)


class Story:
    """One run, what happens to it, and the books beside it."""

    def __init__(self, h: Harness, inv: ToolInvocation, seen: Counter[str]) -> None:
        self.h, self.inv, self.seen = h, inv, seen
        self.ledger = PostgresCallLedger(h.platform.database)
        self.meter = PostgresMeterLedger(h.platform.database)
        self.books = Books()
        self.rows: dict[int, Row] = {}
        self.claims: dict[int, list[Claim]] = {slot: [] for slot in range(SLOTS)}
        self.reads: dict[int, list[Read]] = {slot: [] for slot in range(SLOTS)}

    async def happens(self, number: int, slot: int, cost: Decimal, age: int) -> None:
        row, reads = self.rows.get(slot), self.reads[slot]
        worth = CLAIM["free" if row is None else row.stands] + READ["none" if not reads else reads[-1].stands]
        act = worth[number % len(worth)]
        match act:
            case "claim":
                await self._claim(slot)
            case "claim lapses" if slot in self.rows and self.rows[slot].state == "processing":
                await self._shift("idempotency_keys", f"key = '{self._key(slot).key}'")
                self.rows[slot].leased = False
            case "settle" | "release" | "hold" | "give up" if self.claims[slot]:
                await self._end(act, slot, self.claims[slot][max(-len(self.claims[slot]), -1 - age)], cost)
            case "confirm" | "deny":
                await self._operator_says(slot, happened=act == "confirm")
            case "read":
                await self._read(slot)
            case "settle read" | "release read" if self.reads[slot]:
                reads = self.reads[slot]
                await self._end_read(reads[max(-len(reads), -1 - age)], cost, settled=act == "settle read")
            case "read lapses" if self.reads[slot] and self.reads[slot][-1].state == "held":
                await self._shift("usage_reservations", f"owner_ref = '{self.reads[slot][-1].span_id}'")
                self.reads[slot][-1].lapsed = True
            case "sweep":
                await self._sweep()

    async def check(self) -> None:
        """The books and the tables say the same."""
        stored = await holds(self.h, self.inv.run_id)
        held = {row["owner_ref"]: row["amount"] for row in stored if row["state"] == "held"}
        assert held == self.books.held
        assert len({row["owner_ref"] for row in stored}) == len(stored)  # never held and ended at once, nor held twice
        written = {row["id"]: row["cost"] for row in await lines(self.h, self.inv.run_id)}
        assert written == self.books.lines
        assert len(written) == sum(row["state"] == "settled" for row in stored)
        assert self.books.total <= LIMIT + self.books.above

    # -- claims

    def _key(self, slot: int) -> Any:
        return call_key(
            organization_id=self.h.organization_id, run_id=self.inv.run_id, tool=PAID.name, step_path="agent",
            arguments_digest=f"call {slot}", contract_hash=PAID.contract_hash,
        )  # fmt: skip

    async def _look(self, slot: int) -> JournalRow | None:
        found = await self.ledger.preflight(
            self._key(slot), inv=self.inv, tool=PAID.name, version=1, contract_hash="c", digest="same"
        )
        assert found is not None
        return found.journal

    async def _claim(self, slot: int) -> None:
        row, seen = self.rows.get(slot), await self._look(slot)
        decision = DecisionRecord(
            id=uuid4(), tool=PAID.name, contract_hash=PAID.contract_hash, digest="same", effect="allow",
            rule_id="builtin", rule_version=1, reason="allowed", context_trust=Trust.USER,
        )  # fmt: skip
        request = ClaimRequest(
            key=self._key(slot), spec=PAID, digest="same", arguments_text="{}", seen=seen, lease_s=600,
            watermark=PAID.watermark, fence=self.inv.fence, origin_trust=Trust.USER, approval_id=None,
            proposal_id=None, connection_id=None, decision=decision,
            span=SpanRecord(id=uuid4(), parent_id=None, kind="tool", name=PAID.name, started_at=datetime.now(UTC)),
        )  # fmt: skip
        claim = await self.meter.claim_metered(request, bound=BOUND, inv=self.inv)
        if row is not None and (row.state != "processing" or row.leased):
            assert claim is None
            return
        if row is None and not self.books.has_room:
            assert isinstance(claim, OverBudget)
            self._note("refused")
            return
        assert isinstance(claim, Claim)
        assert claim.hold is not None
        self.claims[slot].append(claim)
        self.rows[slot] = Row(claim=claim)
        self._note("claimed" if row is None else "taken over")
        if row is None:
            self.books.held[_ref(claim)] = BOUND
        else:
            assert claim.epoch == row.claim.epoch

    async def _end(self, act: str, slot: int, claim: Claim, cost: Decimal) -> None:
        row = self.rows.get(slot)
        owned = row is not None and row.state == "processing" and row.claim is claim
        usage = (_line(usage_id(claim, 0), claim.span_id, cost),) if act == "settle" else ()
        hold: Literal["settled", "released"] | None = (
            "settled" if act == "settle" else "released" if act == "release" else None
        )
        now = datetime.now(UTC)
        end = CallEnd(
            outcome_status="ok", outcome_code=None, output=b"{}", proposal_id=None, usage=usage, hold=hold,
            span=SpanRecord(
                id=claim.span_id, parent_id=None, kind="tool", name=claim.tool, started_at=now, ended_at=now,
                status=SpanStatus.OK,
            ),
        )  # fmt: skip
        match act:
            case "settle":
                done = await self.ledger.complete(claim, end)
            case "release":
                done = await self.ledger.release(claim, end)
            case "hold":
                done = await self.ledger.hold(claim, end)
            case _:
                done = await self.ledger.uncertain(claim, end, reason="nobody knows")
        assert done is owned
        if not owned or row is None:
            return
        self._note(act)
        match act:
            case "settle":
                row.state = "completed"
                self.books.settle(_ref(claim), usage_id(claim, 0), cost)
            case "release":
                del self.rows[slot]
                del self.books.held[_ref(claim)]
            case "give up":
                row.state = "uncertain"

    async def _operator_says(self, slot: int, *, happened: bool) -> None:
        row = self.rows.get(slot)
        open_calls = await self.h.platform.journal.list_uncertain(self.h.organization_id, run_id=self.inv.run_id)
        mine = [each for each in open_calls if each.key == self._key(slot).key]
        assert bool(mine) is (row is not None and row.state == "uncertain")
        if row is None or not mine:
            return
        await self.h.platform.journal.settle(
            self.h.organization_id, mine[0].ref, happened=happened, user_id=self.h.user_id, evidence="asked them"
        )
        self._note("confirmed" if happened else "denied")
        if happened:
            row.state = "completed"
            self.books.settle(_ref(row.claim), usage_id(row.claim, 0), BOUND)
        else:
            del self.rows[slot]
            del self.books.held[_ref(row.claim)]

    # -- reads

    async def _read(self, slot: int) -> None:
        span_id = uuid4()
        fits = self.books.has_room
        for _ in range(2):  # asked again after a dropped connection it is the same hold
            hold = await self.meter.hold_read(tool=LOOK, span_id=span_id, bound=BOUND, lease_s=600, inv=self.inv)
            assert isinstance(hold, OverBudget) is not fits
        self._note("read" if fits else "read refused")
        if fits:
            self.books.held[str(span_id)] = BOUND
            self.reads[slot].append(Read(span_id=span_id))

    async def _end_read(self, read: Read, cost: Decimal, *, settled: bool) -> None:
        line = read_usage_id(read.span_id)
        usage = [_line(line, read.span_id, cost)] if settled else []
        state: Literal["settled", "released"] = "settled" if settled else "released"
        ended = await self.meter.end_read(
            span_id=read.span_id, state=state, usage=usage, organization_id=self.h.organization_id
        )
        was_held, read_state = read.state == "held", read.state
        if was_held:
            read.state = state
            self._note(f"{state} read")
            if settled:
                self.books.settle(str(read.span_id), line, cost)
            else:
                del self.books.held[str(read.span_id)]
        assert ended is (was_held or (read_state == state and not read.estimated))

    async def _sweep(self) -> None:
        lapsed = [read for reads in self.reads.values() for read in reads if read.state == "held" and read.lapsed]
        assert await self.h.platform.journal.sweep_holds() == len(lapsed)
        for read in lapsed:
            read.state, read.estimated = "settled", True
            self._note("swept")
            self.books.settle(str(read.span_id), read_usage_id(read.span_id), BOUND)

    async def _shift(self, table: str, where: str) -> None:
        statement = f"update agent.{table} set lease_expires_at = clock_timestamp() - interval '1 second' where run_id = %(run_id)s and "
        assert await execute(self.h, statement + where, run_id=self.inv.run_id) == 1

    def _note(self, what: str) -> None:
        self.seen[what] += 1

    async def ends(self) -> None:
        """The run ends with whatever is open: nothing is held for ever but what an operator still has to answer."""
        await execute(
            self.h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp() where state = 'processing'"
        )
        await execute(
            self.h,
            "update agent.runs set state = 'failed', error_code = 'ended', finished_at = clock_timestamp(),"
            " lease_expires_at = null where id = %(id)s",
            id=self.inv.run_id,
        )
        await execute(
            self.h,
            "update agent.usage_reservations set lease_expires_at = clock_timestamp() where owner = 'read' and state = 'held'",
        )
        await self.h.platform.journal.sweep(grace_s=0)
        await self.h.platform.journal.sweep_holds()
        uncertain = {
            f"{row['organization_id']}:{row['scope']}:{row['key']}:{row['epoch']}"
            for row in await journal(self.h, self.inv.run_id)
            if row["state"] == "uncertain"
        }
        left = {row["owner_ref"] for row in await holds(self.h, self.inv.run_id) if row["state"] == "held"}
        assert left == uncertain


def _ref(claim: Claim) -> str:
    return f"{claim.key.organization_id}:{claim.key.scope}:{claim.key.key}:{claim.epoch}"


def _line(id_: UUID, span_id: UUID, cost: Decimal) -> UsageRecord:
    return UsageRecord(
        id=id_, kind="tool", provider="paid", item=LOOK, quantity=Decimal(1),
        unit="credit", cost=cost, span_id=span_id,
    )  # fmt: skip


@pytest.mark.guarantee("M1", "M2")
def test_after_any_order_of_what_can_happen_the_totals_are_the_sums_of_the_rows(database: str) -> None:
    seen: Counter[str] = Counter()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        def wait(act: Awaitable[T]) -> T:
            async def bounded() -> T:
                async with asyncio.timeout(20):
                    return await act

            return runner.run(bounded())

        h = wait(
            stack.enter_async_context(
                harness(
                    tools=[], script=[Say("Done.")], database_url=database, ceilings=ceiling(str(LIMIT)), usage=FREE
                )
            )
        )

        async def story(steps: list[tuple[int, int, str, int]]) -> None:
            run_id = await h.start()
            led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=600)
            assert led is not None
            inv = ToolInvocation(
                principal=Principal(organization_id=h.organization_id, user_id=h.user_id), run_id=run_id, root_run_id=run_id, definition="tested",
                fence=led.lease.fence, tools={}, context_trust=Trust.USER,
            )  # fmt: skip
            told = Story(h, inv, seen)
            for number, slot, cost, age in steps:
                await told.happens(number, slot, Decimal(cost), age)
                await told.check()
            await told.ends()

        @settings(
            max_examples=25,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(steps=st.lists(STEP, min_size=20, max_size=40))
        def any_order(steps: list[tuple[int, int, str, int]]) -> None:
            wait(story(steps))

        try:
            any_order()
        finally:
            runner.run(stack.aclose())
    wanted = [
        *("claimed", "taken over", "refused", "settle", "release", "hold", "give up", "confirmed", "denied"),
        *("read", "read refused", "settled read", "released read", "swept"),
    ]
    assert [what for what in wanted if not seen[what]] == []  # the search met each at least once
