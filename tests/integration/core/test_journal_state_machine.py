"""The journal beside a model of it: any order of claims, ends, lost leases, late workers, sweeps and operators, on Postgres.

The model is a dictionary. Each step asks both what happens, and after each step both hold the same rows.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentic.contract.errors import NotFound
from agentic.contract.principal import Principal, Role
from agentic.contract.trust import Trust
from agentic.services.journal.models import UncertainCall
from agentic.services.tools.calls import ToolInvocation
from agentic.services.tools.keys import call_key, vendor_key
from agentic.services.tools.models import IdempotencyClass, ToolSpec, Watermark
from agentic.services.tools.ports import CallEnd, CallKey, Claim, ClaimRequest, JournalRow
from agentic.services.tools.records import DecisionRecord, SpanRecord, SpanStatus
from agentic.storage.call_ledger import PostgresCallLedger
from agentic.testing import Harness, Say, harness
from core_world import World, execute, journal, rows

T = TypeVar("T")
_WORLD = World()
KINDS = {
    IdempotencyClass.NON_IDEMPOTENT: _WORLD.write("notes.save").spec,
    IdempotencyClass.CONDITIONAL: _WORLD.send("mail.send", watermark=Watermark.AT_TRANSPORT).spec,
    IdempotencyClass.IDEMPOTENT: _WORLD.write("notes.tag", idempotency="idempotent").spec,
}
SLOT = st.integers(0, 1)
ENDS = st.sampled_from(["complete", "release", "hold", "uncertain"])
RECORDED = {"complete": "completed", "release": "released", "hold": "held", "uncertain": "uncertain"}
EXAMPLES, STEPS = 40, 40


@dataclass(kw_only=True)
class Row:
    """What the model knows of one row of the journal."""

    state: Literal["processing", "completed", "uncertain"] = "processing"
    request_hash: str
    epoch: int
    attempt: int = 1
    repeats: int = 0
    leased: bool = True
    sent: bool
    forgotten: bool = False
    """The vendor no longer remembers the key."""
    output: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a worker read before it claims, perhaps long before."""

    slot: int
    row: JournalRow | None


@dataclass(frozen=True, kw_only=True)
class Held:
    """A claim as its worker remembers it, perhaps long after it lost it."""

    slot: int
    claim: Claim


@dataclass(kw_only=True)
class Journal:
    """The model: rows by slot, and what must have been recorded of each."""

    rows: dict[int, Row] = field(default_factory=dict)
    last_epoch: dict[int, int] = field(default_factory=dict)
    effects: dict[int, list[tuple[str, int, int]]] = field(default_factory=lambda: {0: [], 1: []})

    def owned(self, held: Held) -> Row | None:
        """The row, while this claim still owns it."""
        row = self.rows.get(held.slot)
        if row is None or row.state != "processing":
            return None
        return row if (row.epoch, row.attempt) == (held.claim.epoch, held.claim.attempt) else None

    def record(self, slot: int, kind: str) -> None:
        """One line in the record of effects."""
        self.effects[slot].append((kind, self.rows[slot].epoch, self.rows[slot].attempt))


class JournalBesideItsModel(RuleBasedStateMachine):
    """One run with two calls, many workers, and an operator."""

    runner: ClassVar[asyncio.Runner]
    h: ClassVar[Harness]
    ledger: ClassVar[PostgresCallLedger]
    member: ClassVar[UUID]
    seen: ClassVar[Counter[tuple[str, bool]]]

    looks: Bundle[Look] = Bundle("looks")
    claims: Bundle[Held] = Bundle("claims")
    open_calls: Bundle[UncertainCall] = Bundle("open_calls")

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        """Do it on the one loop that the connections live on."""

        async def bounded() -> T:
            async with asyncio.timeout(10):
                return await act

        return self.runner.run(bounded())

    def note(self, what: str, *, succeeded: bool) -> None:
        """Count what was tried, so that the test can tell a search from a walk on the spot."""
        self.seen[what, succeeded] += 1

    def any_(self, state: str) -> bool:
        """Whether the model has a row in this state; rules that would find nothing wait until there is one."""
        return any(row.state == state for row in self.model.rows.values())

    @initialize(kinds=st.permutations(list(KINDS)))
    def a_run_is_led(self, kinds: Sequence[IdempotencyClass]) -> None:
        """Two of the three classes, so that a class meets every other."""
        self.model = Journal()
        self.specs = [KINDS[kind] for kind in kinds[:2]]
        self.run_id = self.wait(self.h.start())
        self.vendor_keys: dict[tuple[int, int], str] = {}
        self.fences: list[int] = []
        self.led = True
        self._lead()

    # -- workers

    @rule(target=looks, slot=SLOT)
    def a_worker_looks(self, slot: int) -> Look:
        return Look(slot=slot, row=self._look(slot))

    @rule(target=claims, slot=SLOT)
    def a_worker_looks_and_claims(self, slot: int) -> "Held | MultipleResults[Held]":
        return self._claim("claim", Look(slot=slot, row=self._look(slot)), fence=self.fences[-1], contract="as frozen")

    @rule(
        target=claims,
        look=looks,
        fence=st.sampled_from(["ours", "ours", "first"]),
        contract=st.sampled_from(["as frozen", "as frozen", "changed"]),
    )
    def a_worker_claims_what_it_saw_earlier(
        self, look: Look, fence: str, contract: str
    ) -> "Held | MultipleResults[Held]":
        at = self.fences[-1] if fence == "ours" else self.fences[0]
        return self._claim("late claim", look, fence=at, contract=contract)

    @rule(held=claims)
    def a_worker_is_about_to_send(self, held: Held) -> None:
        row = self.model.owned(held)
        expected = row is not None and row.leased
        assert self.wait(self.ledger.mark_effect_sent(held.claim)) is expected
        if row is not None and expected:
            row.sent = True
        self.note("mark", succeeded=expected)

    @rule(held=claims)
    def a_worker_repeats_in_place(self, held: Held) -> None:
        row = self.model.owned(held)
        assert self.wait(self.ledger.count_repeat(held.claim)) is (row is not None)
        if row is not None:
            row.repeats += 1
        self.note("repeat", succeeded=row is not None)

    @rule(held=claims, how=ENDS, ok=st.booleans())
    def a_worker_ends_its_call(self, held: Held, how: str, ok: bool) -> None:
        row = self.model.owned(held)
        end = _end(held.claim, ok=ok)
        ends: dict[str, Callable[[], Awaitable[bool]]] = {
            "complete": lambda: self.ledger.complete(held.claim, end),
            "release": lambda: self.ledger.release(held.claim, end),
            "hold": lambda: self.ledger.hold(held.claim, end),
            "uncertain": lambda: self.ledger.uncertain(held.claim, end, reason="nobody knows"),
        }
        assert self.wait(_bool(ends[how]())) is (row is not None)
        self.note(how, succeeded=row is not None)
        if row is None:
            return
        self.model.record(held.slot, RECORDED[how])
        match how:
            case "complete":
                row.state, row.output = "completed", end.output
            case "release":
                del self.model.rows[held.slot]
            case "uncertain":
                row.state = "uncertain"

    # -- time and death

    @precondition(lambda self: self.any_("processing"))
    @rule(slot=SLOT)
    def a_claim_outlives_its_lease(self, slot: int) -> None:
        row = self.model.rows.get(slot)
        if row is not None and row.state == "processing":
            self._shift(slot, "lease_expires_at = clock_timestamp() - interval '1 second'")
            row.leased = False

    @precondition(lambda self: self.any_("processing"))
    @rule(slot=SLOT)
    def a_vendor_forgets_the_key(self, slot: int) -> None:
        row = self.model.rows.get(slot)
        if row is not None and row.sent:
            self._shift(slot, "effect_sent_at = effect_sent_at - interval '2 hours'")
            row.forgotten = True

    @rule(again=st.booleans())
    def the_runs_lease_is_over(self, again: bool) -> None:
        """Its leader may be dead, or only slow: the calls it claimed do not say."""
        self._expire_the_run()
        self.led = False
        if again:
            self._lead()

    @precondition(lambda self: not self.led)
    @rule()
    def another_worker_leads_the_run(self) -> None:
        self._lead()

    @precondition(lambda self: self.any_("processing"))
    @rule()
    def the_sweep_comes_by(self) -> None:
        stale = [slot for slot, row in self.model.rows.items() if self._is_the_operators(slot, row)]
        assert self.wait(self.h.platform.journal.sweep(grace_s=0)) == len(stale)
        for slot in stale:
            self.model.record(slot, "uncertain")
            self.model.rows[slot].state = "uncertain"
        self.note("sweep", succeeded=bool(stale))

    # -- operators

    @precondition(lambda self: self.any_("uncertain"))
    @rule(target=open_calls)
    def an_operator_lists_what_is_open(self) -> MultipleResults[UncertainCall]:
        found = self.wait(_list(self.h.uncertain(self.run_id)))
        expected = {self._key(slot).key for slot, row in self.model.rows.items() if row.state == "uncertain"}
        assert {call.key for call in found} == expected
        return multiple(*found)

    @rule(call=open_calls, happened=st.booleans(), by=st.sampled_from(["operator", "operator", "member"]))
    def somebody_says_what_happened(self, call: UncertainCall, happened: bool, by: str) -> None:
        slot = next(slot for slot in (0, 1) if self._key(slot).key == call.key)
        row = self.model.rows.get(slot)
        expected = row is not None and row.state == "uncertain" and row.epoch == call.epoch and by == "operator"
        store = self.h.platform.journal._store
        act = store.confirm if happened else store.deny
        person = self.h.user_id if by == "operator" else self.member
        assert self.wait(_bool(act(call, user_id=person, evidence="looked it up"))) is expected
        self.note("confirm" if happened else "deny", succeeded=expected)
        if row is not None and expected:
            self._settled(slot, happened=happened)

    @precondition(lambda self: self.any_("uncertain"))
    @rule(slot=SLOT, happened=st.booleans())
    def an_operator_settles_by_reference(self, slot: int, happened: bool) -> None:
        row = self.model.rows.get(slot)
        found = [call for call in self.wait(_list(self.h.uncertain(self.run_id))) if call.key == self._key(slot).key]
        if row is None or row.state != "uncertain":
            assert found == []
            return
        settle = self.h.platform.journal.settle
        by_ref = {"happened": happened, "user_id": self.h.user_id, "evidence": "asked the vendor"}
        self.wait(settle(self.h.organization_id, found[0].ref, **by_ref))  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            self.wait(settle(self.h.organization_id, found[0].ref, **by_ref))  # type: ignore[arg-type]
        self._settled(slot, happened=happened)

    # -- what holds after every step

    @invariant()
    def both_hold_the_same_rows(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = {row["key"]: row for row in self.wait(journal(self.h, self.run_id))}
        assert set(stored) == {self._key(slot).key for slot in self.model.rows}
        for slot, row in self.model.rows.items():
            is_ = stored[self._key(slot).key]
            assert (is_["state"], is_["epoch"], is_["attempt"], is_["repeats"], is_["request_hash"], is_["output"]) == (
                row.state, row.epoch, row.attempt, row.repeats, row.request_hash, row.output or is_["output"],
            )  # fmt: skip
            assert (is_["effect_sent_at"] is not None) is row.sent
            assert (is_["lease_expires_at"] is not None) is (row.state == "processing")
        [run] = self.wait(rows(self.h, "select has_uncertain from agent.runs where id = %(id)s", id=self.run_id))
        assert run["has_uncertain"] is any(row.state == "uncertain" for row in self.model.rows.values())

    def teardown(self) -> None:
        """The run ends with whatever is open: nothing stays processing, and the record tells all of it in order."""
        if not hasattr(self, "model"):
            return
        for slot, row in list(self.model.rows.items()):
            if row.state != "processing":
                continue
            self._shift(slot, "lease_expires_at = clock_timestamp() - interval '1 second'")
            self.model.record(slot, "uncertain" if row.sent else "released")
        self.wait(
            execute(
                self.h,
                "update agent.runs set state = 'failed', error_code = 'ended', finished_at = clock_timestamp(),"
                " lease_expires_at = null where id = %(id)s",
                id=self.run_id,
            )
        )
        self.wait(self.h.platform.journal.sweep(grace_s=0))
        assert [row for row in self.wait(journal(self.h, self.run_id)) if row["state"] == "processing"] == []
        chain = self.wait(
            rows(
                self.h,
                "select e.*, encode(sha256(convert_to(prev_hash || (to_jsonb(e) || '{\"hash\": \"\"}')::text, 'UTF8')), 'hex')"
                " as proof from agent.effects e where run_id = %(id)s order by seq",
                id=self.run_id,
            )
        )
        for slot in (0, 1):
            told = [(e["kind"], e["epoch"], e["attempt"]) for e in chain if e["key"] == self._key(slot).key]
            assert told == self.model.effects[slot]
        assert [line["seq"] for line in chain] == list(range(1, len(chain) + 1))
        assert [line["prev_hash"] for line in chain] == ["", *(line["hash"] for line in chain)][:-1]
        assert all(line["hash"] == line["proof"] for line in chain)

    # -- how both are moved

    def _key(self, slot: int, *, contract: str = "as frozen") -> CallKey:
        spec = self.specs[slot]
        return call_key(
            organization_id=self.h.organization_id, run_id=self.run_id, tool=spec.name, step_path="agent",
            arguments_digest=f"call {slot}", contract_hash=spec.contract_hash if contract == "as frozen" else contract,
        )  # fmt: skip

    def _invocation(self) -> ToolInvocation:
        return ToolInvocation(
            principal=Principal(organization_id=self.h.organization_id, user_id=self.h.user_id),
            run_id=self.run_id, root_run_id=self.run_id, definition="tested", fence=self.fences[-1], tools={},
            context_trust=Trust.USER,
        )  # fmt: skip

    def _lead(self) -> None:
        led = self.wait(self.h.platform.run_store.take(self.h.organization_id, self.run_id, lease_s=600))
        assert led is not None
        assert led.lease.fence > max(self.fences, default=0)
        self.fences.append(led.lease.fence)
        self.led = True

    def _expire_the_run(self) -> None:
        statement = "update agent.runs set lease_expires_at = clock_timestamp() where id = %(id)s"
        assert self.wait(execute(self.h, statement, id=self.run_id)) == 1

    def _shift(self, slot: int, change: str) -> None:
        statement = f"update agent.idempotency_keys set {change} where run_id = %(run_id)s and key = %(key)s"
        assert self.wait(execute(self.h, statement, run_id=self.run_id, key=self._key(slot).key)) == 1

    def _look(self, slot: int) -> JournalRow | None:
        spec = self.specs[slot]
        preflight = self.wait(
            self.ledger.preflight(
                self._key(slot), inv=self._invocation(), tool=spec.name, version=1, contract_hash="c", digest="same"
            )
        )
        assert preflight is not None
        seen, row = preflight.journal, self.model.rows.get(slot)
        assert (seen is None) is (row is None)
        if seen is not None and row is not None:
            assert (seen.state, seen.epoch, seen.attempt) == (row.state, row.epoch, row.attempt)
            assert seen.lease_live is (row.state == "processing" and row.leased)
        return seen

    def _claim(self, what: str, look: Look, *, fence: int, contract: str) -> "Held | MultipleResults[Held]":
        key, spec = self._key(look.slot, contract=contract), self.specs[look.slot]
        row = self.model.rows.get(look.slot)
        ours = self.led and fence == self.fences[-1]
        over = (
            row is not None and row.state == "processing" and not row.leased and row.request_hash == key.request_hash
            and look.row is not None and (look.row.epoch, look.row.attempt) == (row.epoch, row.attempt)
        )  # fmt: skip
        claim = self.wait(self.ledger.claim(_request(key, spec, seen=look.row, fence=fence), inv=self._invocation()))
        assert (claim is not None) is (ours and (row is None or over))
        self.note(f"{what} anew" if row is None else f"{what} over", succeeded=claim is not None)
        if claim is None:
            return multiple()
        if row is None:
            assert claim.epoch > self.model.last_epoch.get(look.slot, 0)
            assert claim.attempt == 1
            self.model.last_epoch[look.slot] = claim.epoch
            self.model.rows[look.slot] = Row(
                request_hash=key.request_hash, epoch=claim.epoch, sent=spec.watermark is Watermark.AT_CLAIM
            )
        else:
            assert (claim.epoch, claim.attempt) == (row.epoch, row.attempt + 1)
            row.attempt, row.repeats, row.leased = claim.attempt, 0, True
        self._tell_the_vendor(look.slot, claim)
        return Held(slot=look.slot, claim=claim)

    def _tell_the_vendor(self, slot: int, claim: Claim) -> None:
        """Every attempt of an epoch shows the vendor one key, and no two epochs show the same."""
        shown = vendor_key(claim)
        assert self.vendor_keys.setdefault((slot, claim.epoch), shown) == shown
        assert len(set(self.vendor_keys.values())) == len(self.vendor_keys)

    def _is_the_operators(self, slot: int, row: Row) -> bool:
        if row.state != "processing" or row.leased or not row.sent:
            return False
        match self.specs[slot].idempotency:
            case IdempotencyClass.NON_IDEMPOTENT:
                return True
            case IdempotencyClass.CONDITIONAL:
                return row.forgotten
            case _:
                return False

    def _settled(self, slot: int, *, happened: bool) -> None:
        self.model.record(slot, "confirmed" if happened else "denied")
        if happened:
            self.model.rows[slot].state = "completed"
        else:
            del self.model.rows[slot]


def _request(key: CallKey, spec: ToolSpec, *, seen: JournalRow | None, fence: int) -> ClaimRequest:
    decision = DecisionRecord(
        id=uuid4(), tool=spec.name, contract_hash=spec.contract_hash, digest="same", effect="allow", rule_id="builtin",
        rule_version=1, reason="allowed", context_trust=Trust.USER,
    )  # fmt: skip
    span = SpanRecord(id=uuid4(), parent_id=None, kind="tool", name=spec.name, started_at=datetime.now(UTC))
    return ClaimRequest(
        key=key, spec=spec, digest="same", arguments_text="{}", seen=seen, lease_s=600, watermark=spec.watermark,
        fence=fence, origin_trust=Trust.USER, approval_id=None, proposal_id=None, connection_id=None, span=span,
        decision=decision,
    )  # fmt: skip


def _end(claim: Claim, *, ok: bool) -> CallEnd:
    now = datetime.now(UTC)
    return CallEnd(
        outcome_status="ok" if ok else "error",
        outcome_code=None if ok else "conflict",
        output=f"{claim.epoch}.{claim.attempt}.{ok}".encode(),
        span=SpanRecord(
            id=claim.span_id, parent_id=None, kind="tool", name=claim.tool, started_at=now, ended_at=now,
            status=SpanStatus.OK if ok else SpanStatus.ERROR,
        ),
        proposal_id=None,
    )  # fmt: skip


async def _bool(act: Awaitable[bool]) -> bool:
    return await act


async def _list(act: Awaitable[Sequence[UncertainCall]]) -> list[UncertainCall]:
    return list(await act)


@pytest.mark.guarantee("J5", "J6", "J7")
def test_the_journal_does_what_its_model_says_in_any_order_of_workers_time_and_operators(database: str) -> None:
    machine = JournalBesideItsModel
    machine.seen, machine.member = Counter(), uuid4()
    with asyncio.Runner() as runner:
        stack, machine.runner = AsyncExitStack(), runner
        machine.h = runner.run(
            stack.enter_async_context(harness(tools=[], script=[Say("Done.")], database_url=database))
        )
        try:
            machine.ledger = PostgresCallLedger(machine.h.platform.database)
            runner.run(
                machine.h.platform.approval_store.put_member(machine.h.organization_id, machine.member, Role.APPROVER)
            )
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                machine,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    derandomize=True,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(stack.aclose())
    print(sorted(machine.seen.items()))
    assert [what for what in TRIED if not machine.seen[what]] == []


TRIED = [
    *((what, True) for what in ("claim anew", "claim over", "late claim anew", "late claim over", "sweep")),
    *((what, False) for what in ("claim anew", "claim over", "late claim anew", "late claim over")),
    *((what, on) for what in ("mark", "repeat", "complete", "release", "hold", "uncertain") for on in (True, False)),
    *((what, on) for what in ("confirm", "deny") for on in (True, False)),
]
