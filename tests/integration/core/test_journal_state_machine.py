"""The journal beside a model of it: any order of claims, ends, lost leases, late workers, sweeps and operators, on Postgres.

The model is a dictionary. Each step asks both what happens, and after each step both hold the same rows.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from agentic.contract.errors import Conflict
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
from journal_model import JournalModel, Row

T = TypeVar("T")
_WORLD = World()
KINDS = (
    _WORLD.write("notes.save").spec,
    _WORLD.send("mail.send", watermark=Watermark.AT_TRANSPORT).spec,
    _WORLD.write("notes.tag", idempotency="idempotent").spec,
)
"""One call of each class, by its slot."""
SLOT = st.integers(0, len(KINDS) - 1)
AGE = st.sampled_from([0, 0, 0, 1, 2])
"""How long ago a worker or an operator looked: mostly just now."""
CONTRACT = st.sampled_from(["as frozen", "as frozen", "as frozen", "changed"])
FENCE = st.sampled_from(["ours", "ours", "ours", "first"])
LATE = ("mark", "repeat", "complete", "release", "hold", "uncertain")
WORTH_TRYING: dict[str, tuple[str, ...]] = {
    "free": ("claim",) * 8 + (*LATE, "settle", "run"),
    "led": (*LATE, "complete", "uncertain", "mark", *("lease",) * 6, "vendor", "claim", "run", "sweep"),
    "stale": ("claim",) * 5 + (*LATE, "sweep", "sweep", "sweep", "vendor", "run"),
    "uncertain": (*LATE, "settle", "settle", "settle", "settle", "settle by reference", "claim", "sweep"),
    "completed": (*LATE, "claim", "claim", "settle", "run", "sweep"),
}
"""What may happen next to a call, by how it stands; the rest would find nothing to do or to refuse."""
EXAMPLES, STEPS = 40, 30
TRIED = [
    *((what, True) for what in ("claim", "take over", *LATE, "sweep", "confirm", "deny")),
    *((what, False) for what in ("claim", "take over", *LATE, "settle")),
]
"""The search is worth something only when each of these happened, and was refused, at least once."""


class JournalBesideItsModel(RuleBasedStateMachine):
    """One run with two calls, many workers, and an operator."""

    runner: ClassVar[asyncio.Runner]
    h: ClassVar[Harness]
    ledger: ClassVar[PostgresCallLedger]
    member: ClassVar[UUID]
    seen: ClassVar[Counter[tuple[str, bool]]]

    def wait(self, act: Awaitable[T]) -> T:
        """Do it on the one loop that the connections live on."""

        async def bounded() -> T:
            async with asyncio.timeout(30):
                return await act

        return self.runner.run(bounded())

    def note(self, what: str, *, succeeded: bool) -> None:
        """Count what was tried, so that the test can tell a search from a walk on the spot."""
        self.seen[what, succeeded] += 1

    @initialize()
    def a_run_is_led(self) -> None:
        """Nothing of it is claimed yet."""
        self.model = JournalModel()
        self.run_id = self.wait(self.h.start())
        self.vendor_keys: dict[tuple[int, int], str] = {}
        self.fences: list[int] = []
        self.looks: dict[int, list[JournalRow | None]] = {slot: [] for slot in range(len(KINDS))}
        self.claims: dict[int, list[Claim]] = {slot: [] for slot in range(len(KINDS))}
        self.open_calls: dict[int, list[UncertainCall]] = {slot: [] for slot in range(len(KINDS))}
        self.led = True
        self._lead()

    # -- steps

    @rule(
        number=st.integers(0, 99),
        slot=SLOT,
        age=AGE,
        fence=FENCE,
        contract=CONTRACT,
        by=st.sampled_from(["operator", "operator", "member"]),
        yes=st.booleans(),
    )
    def something_happens(
        self, number: int, slot: int, age: int, fence: str, contract: str, by: str, yes: bool
    ) -> None:
        """One rule for all: of several, hypothesis leaves some out of an example, and a story without ends tells little."""
        row = self.model.rows.get(slot)
        worth = WORTH_TRYING["free" if row is None else row.stands]
        what = worth[number % len(worth)]
        match what:
            case "claim":
                self._worker_claims(slot, age, fence, contract)
            case "lease" | "vendor" | "run" | "sweep":
                self._time_passes(slot, what, again=yes)
            case "settle":
                self._operator_says(slot, happened=yes, by=by)
            case "settle by reference":
                self._operator_says_by_reference(slot, happened=yes)
            case _:
                self._worker_goes_on(slot, age, what, ok=yes)

    def _worker_claims(self, slot: int, age: int, fence: str, contract: str) -> None:
        """By what it reads now, or by what it read a while ago."""
        if age == 0 or not self.looks[slot]:
            self.looks[slot].append(self._look(slot))
        at = self.fences[-1] if fence == "ours" else self.fences[0]
        self._claim(slot, _aged(self.looks[slot], age), fence=at, contract=contract)

    def _worker_goes_on(self, slot: int, age: int, what: str, ok: bool) -> None:
        """By a claim it has, or by one it had."""
        if not self.claims[slot]:
            return
        claim = _aged(self.claims[slot], age)
        row, end = self.model.owned(slot, claim), _end(claim, ok=ok)
        match what:
            case "mark":
                done = self.wait(self.ledger.mark_effect_sent(claim))
            case "repeat":
                done = self.wait(self.ledger.count_repeat(claim))
            case "complete":
                done = self.wait(self.ledger.complete(claim, end))
            case "release":
                done = self.wait(self.ledger.release(claim, end))
            case "hold":
                done = self.wait(self.ledger.hold(claim, end))
            case _:
                done = self.wait(self.ledger.uncertain(claim, end, reason="nobody knows"))
        assert done is (row is not None and (row.leased or what != "mark"))
        self.note(what, succeeded=done)
        if done:
            self.model.work(slot, what, end.output)

    def _time_passes(self, slot: int, what: str, again: bool) -> None:
        """A claim's lease ends, a vendor forgets, the run loses its leader or gets one, the sweep comes by."""
        row = self.model.rows.get(slot)
        match what:
            case "lease" if row is not None and row.state == "processing":
                self._shift(slot, "lease_expires_at = clock_timestamp() - interval '1 second'")
                row.leased = False
            case "vendor" if row is not None and row.sent:
                self._shift(slot, "effect_sent_at = effect_sent_at - interval '2 hours'")
                row.forgotten = True
            case "run":
                if self.led:
                    self._expire_the_run()
                if again or not self.led:
                    self._lead()
                else:
                    self.led = False
            case "sweep":
                self._sweep()

    # -- operators

    def _operator_says(self, slot: int, happened: bool, by: str) -> None:
        """Of a call as the list shows it now, after somebody who still looks at an older list."""
        known = {call.epoch for call in self.open_calls[slot]}
        self.open_calls[slot] += [call for call in self._listed(slot) if call.epoch not in known]
        store = self.h.platform.journal._store
        act = store.confirm if happened else store.deny
        person = self.h.user_id if by == "operator" else self.member
        for call in self.open_calls[slot][-2:]:
            row = self.model.rows.get(slot)
            expected = row is not None and row.state == "uncertain" and row.epoch == call.epoch and by == "operator"
            assert self.wait(act(call, user_id=person, evidence="looked it up")) is expected
            self.note(("confirm" if happened else "deny") if expected else "settle", succeeded=expected)
            if expected:
                self.model.settle(slot, happened=happened)

    def _operator_says_by_reference(self, slot: int, happened: bool) -> None:
        """The second one to do so is told what the first one said."""
        for call in self._listed(slot):
            self.wait(self._settle(call, happened))
            self.model.settle(slot, happened=happened)
            said = "it happened" if happened else "it did not happen"
            with pytest.raises(Conflict, match=f"settled already: .*{said}"):
                self.wait(self._settle(call, happened))

    # -- what holds after every step

    @invariant()
    def both_hold_the_same_rows(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = {row["key"]: row for row in self.wait(journal(self.h, self.run_id))}
        assert set(stored) == {self._key(slot).key for slot in self.model.rows}
        for slot, row in self.model.rows.items():
            is_ = stored[self._key(slot).key]
            if row.state == "completed" and row.output is None:
                row.output = is_["output"]  # an operator's word, in the store's own form: from here on it is final
            assert (is_["state"], is_["epoch"], is_["attempt"], is_["repeats"], is_["request_hash"], is_["output"]) == (
                row.state, row.epoch, row.attempt, row.repeats, row.request_hash, row.output,
            )  # fmt: skip
            assert (row.output is not None) is (row.state == "completed")
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
            rows(self.h, "select * from agent.effects where run_id = %(id)s order by seq", id=self.run_id)
        )
        for slot in range(len(KINDS)):
            told = [(e["kind"], e["epoch"], e["attempt"]) for e in chain if e["key"] == self._key(slot).key]
            assert told == self.model.effects[slot]
        assert self.wait(self.h.platform.audit.verify(self.h.organization_id, self.run_id)).findings == ()

    # -- how both are moved

    def _key(self, slot: int, *, contract: str = "as frozen") -> CallKey:
        spec = KINDS[slot]
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
        spec = KINDS[slot]
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

    def _claim(self, slot: int, seen: JournalRow | None, *, fence: int, contract: str) -> None:
        key, spec, row = self._key(slot, contract=contract), KINDS[slot], self.model.rows.get(slot)
        may = self.led and fence == self.fences[-1] and (row is None or row.free_for(seen, key.request_hash))
        claim = self.wait(self.ledger.claim(_request(key, spec, seen=seen, fence=fence), inv=self._invocation()))
        assert (claim is not None) is may
        self.note("claim" if row is None else "take over", succeeded=may)
        if claim is None:
            return
        if row is None:
            assert claim.epoch > self.model.last_epoch.get(slot, 0)
            assert claim.attempt == 1
            self.model.last_epoch[slot] = claim.epoch
            sent = spec.watermark is Watermark.AT_CLAIM
            self.model.rows[slot] = Row(request_hash=key.request_hash, epoch=claim.epoch, sent=sent)
        else:
            assert (claim.epoch, claim.attempt) == (row.epoch, row.attempt + 1)
            row.attempt, row.repeats, row.leased = claim.attempt, 0, True
            row.sent = row.sent or spec.watermark is Watermark.AT_CLAIM
        self.claims[slot].append(claim)
        self._tell_the_vendor(slot, claim)

    def _held(self, slot: int, age: int) -> list[Claim]:
        """The claim a worker of this call thinks it has; none, when nobody ever claimed the call."""
        return [_aged(self.claims[slot], age)] if self.claims[slot] else []

    def _listed(self, slot: int) -> list[UncertainCall]:
        """The call as the operators' list shows it."""
        found = self.wait(self.h.platform.journal.list_uncertain(self.h.organization_id, run_id=self.run_id))
        row = self.model.rows.get(slot)
        mine = [call for call in found if call.key == self._key(slot).key]
        assert [call.epoch for call in mine] == ([row.epoch] if row and row.state == "uncertain" else [])
        return mine

    def _settle(self, call: UncertainCall, happened: bool) -> Coroutine[Any, Any, UncertainCall]:
        return self.h.platform.journal.settle(
            self.h.organization_id, call.ref, happened=happened, user_id=self.h.user_id, evidence="asked the vendor"
        )

    def _tell_the_vendor(self, slot: int, claim: Claim) -> None:
        """Every attempt of an epoch shows the vendor one key, and no two epochs show the same."""
        shown = vendor_key(claim)
        assert self.vendor_keys.setdefault((slot, claim.epoch), shown) == shown
        assert len(set(self.vendor_keys.values())) == len(self.vendor_keys)

    def _sweep(self) -> None:
        stale = [slot for slot, row in self.model.rows.items() if self._is_the_operators(slot, row)]
        assert self.wait(self.h.platform.journal.sweep(grace_s=0)) == len(stale)
        for slot in stale:
            self.model.record(slot, "uncertain")
            self.model.rows[slot].state = "uncertain"
        self.note("sweep", succeeded=bool(stale))

    def _is_the_operators(self, slot: int, row: Row) -> bool:
        if row.state != "processing" or row.leased or not row.sent:
            return False
        match KINDS[slot].idempotency:
            case IdempotencyClass.NON_IDEMPOTENT:
                return True
            case IdempotencyClass.CONDITIONAL:
                return row.forgotten
            case _:
                return False


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


def _aged(kept: Sequence[T], age: int) -> T:
    """The one of so many before the last."""
    return kept[max(-len(kept), -1 - age)]


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
            run_state_machine_as_test(
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
    assert [what for what in TRIED if not machine.seen[what]] == []
