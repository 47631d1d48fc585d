"""The life of a run on its lease: started once, led by one, stopped, resumed, swept, and always ended with a reason."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import Conflict, NotFound, NotPermitted, ProgramFault
from agentic.contract.events import EventName
from agentic.contract.principal import Principal, Role, RunCeilings
from agentic.contract.trust import Trust
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.script import Turn
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.models import Verdict
from agentic.services.runs.models import Append, Lease, Renewed, RunEnd, RunMessage
from agentic.services.tools.context import CallContext
from agentic.testing import Call, Calls, Fail, Harness, Say, harness
from core_world import Done, World, execute, journal, rows
from late_renewal import renewed_too_late

SAVE = Calls([Call("notes.save", {"text": "milk"})])
MAIL = Calls([Call("mail.send", {"text": "hello"})])
LOOK = Calls([Call("crm.search", {"text": "per"})])


async def run_row(h: Harness, run_id: UUID) -> dict[str, Any]:
    [row] = await rows(h, "select * from agent.runs where id = %(run_id)s", run_id=run_id)
    return row


async def test_the_same_request_is_the_same_run_and_another_input_a_conflict(database: str) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[Say("Hi.")], database_url=database) as h:
        first = await h.start("Hello.", request_key="k")
        assert await h.start("Hello.", request_key="k") == first
        with pytest.raises(Conflict, match="'k' was used for another input"):
            await h.start("Bye.", request_key="k")
        deployed = h.agent.model_copy(update={"instructions": "Do it better.", "tools": ()})
        assert await h.start("Hello.", request_key="k", agent=deployed) == first
        starts = await asyncio.gather(*(h.start("At once.", request_key="once") for _ in range(20)))
        assert len(set(starts)) == 1
        other = await h.platform.runs.start(
            h.agent, "Bye.", principal=Principal(organization_id=uuid4()), request_key="k"
        )
        assert other.run_id != first


async def test_any_text_of_a_person_starts_a_run(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        for key, text in enumerate(["Zoe\u0308 writes", "\u212bngstro\u0308m", "nul \x00", "half \ud800", "👩‍💻"]):
            run_id = await h.start(text, request_key=str(key))
            assert await h.start(text, request_key=str(key)) == run_id
            assert (await h.settle(run_id)).state == "succeeded"


async def test_a_request_key_that_no_row_can_hold_is_refused_in_words(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        principal = Principal(organization_id=h.organization_id)
        for key in ("", "a\x00b", "half \ud800", "k" * 201):
            with pytest.raises(ProgramFault, match="request key"):
                await h.platform.runs.start(h.agent, "Hello.", principal=principal, request_key=key)


@pytest.mark.guarantee("T1")
async def test_a_foreign_run_approval_or_reference_looks_like_a_missing_one(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        elsewhere = uuid4()
        await h.platform.approval_store.put_member(elsewhere, h.user_id, Role.ADMIN)
        assert (await h.platform.leader.advance(elsewhere, run_id)).state == "idle"
        assert not await h.platform.runs.cancel(elsewhere, run_id)
        for missing in (run_id, uuid4()):
            with pytest.raises(NotFound, match=str(missing)):
                await h.platform.runs.tree(elsewhere, missing)
        with pytest.raises(NotFound):
            await h.platform.approvals.show(elsewhere, approval.id)
        assert await h.platform.approvals.find(elsewhere) == []
        assert (await run_row(h, run_id))["cancel_requested_at"] is None


@pytest.mark.guarantee("W4")
async def test_a_run_cancelled_before_it_began_asks_no_model(database: str) -> None:
    def never(_history: object) -> Say:
        raise AssertionError("the model was asked")

    async with harness(tools=[], script=[never], database_url=database) as h:
        run_id = await h.start()
        assert await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        assert not await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        assert (await h.settle(run_id)).state == "cancelled"


@pytest.mark.guarantee("W4")
async def test_a_run_cancelled_while_it_waits_ends_and_its_question_can_no_longer_be_decided(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        [approval] = (await h.tree(run_id)).approvals
        await h.platform.runs.cancel(h.organization_id, run_id)
        assert (await h.settle(run_id)).state == "cancelled"
        with pytest.raises(Conflict, match="cancelled"):
            await h.platform.approvals.decide(
                h.organization_id, approval["id"], user_id=h.user_id, verdict=Verdict.APPROVED
            )
        assert world.effects == []


@pytest.mark.guarantee("W4")
async def test_a_run_cancelled_during_the_drain_finishes_the_call_in_hand_and_runs_no_other(database: str) -> None:
    world = World()
    made: list[Harness] = []

    async def cancels(ctx: CallContext, _args: Any) -> Any:
        assert await made[0].platform.runs.cancel(ctx.organization_id, ctx.run_id)
        return Done(id="1")

    turn = Calls([Call("notes.save", {"text": "a"}), Call("notes.save", {"text": "b"})])
    async with harness(tools=[world.write(does=cancels)], script=[turn, Say("x")], database_url=database) as h:
        made.append(h)
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "cancelled"
        assert world.of("notes.save") == ["a"]
        [claim] = await journal(h, run_id)
        assert claim["state"] == "completed"


async def test_model_requests_count_against_their_ceiling(database: str) -> None:
    world = World()
    asked: list[int] = []

    def again(history: Any) -> Calls:
        asked.append(1)
        return Calls([Call("crm.search", {"text": str(len(asked))})])

    async with harness(
        tools=[world.read()],
        script=[again] * 20,
        database_url=database,
        ceilings=RunCeilings(max_model_requests=3),
    ) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "limit_reached")
        assert len(asked) == 3
        assert (await run_row(h, run_id))["model_requests"] == 3


async def test_a_provider_that_is_down_releases_the_run_in_order_and_it_comes_back(database: str) -> None:
    async with harness(
        tools=[],
        script=[Say("Hi.")],
        database_url=database,
        failures={n: Fail(status=503) for n in range(7)},
        timings=Timings(lease_s=2, renew_s=0.5, model_retry_s=0.02, model_retry_max_s=0.3),
        ceilings=RunCeilings(max_model_requests=2),
    ) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        row = await run_row(h, run_id)
        assert (row["state"], row["attempts_without_progress"]) == ("running", 0)
        assert row["lease_expires_at"] is None
        assert row["due_at"] is not None
        assert row["provider_failures"] == 1
        assert (await h.settle(run_id)).answer == "Hi."  # more failures than the crash loop allows
        assert (await run_row(h, run_id))["model_requests"] == 1  # what the provider did not take counts for nothing


async def test_a_provider_that_refuses_for_good_fails_the_run(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database, failures={0: Fail(status=400)}) as h:
        run_id = await h.start()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "model_refused")


@pytest.mark.guarantee("W4")
async def test_a_run_past_its_deadline_ends_though_it_waits_for_a_person(database: str) -> None:
    world = World()
    timings = Timings(lease_s=2, renew_s=0.5, run_deadline_s=0.4)
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database, timings=timings) as h:
        run_id = await h.start()
        assert await h.advance(run_id) == "parked"
        await asyncio.sleep(0.5)
        await h.platform.sweeper.runs()
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "deadline")
        [approval] = (await h.tree(run_id)).approvals
        assert approval["status"] == "expired"


async def test_a_slice_that_is_over_releases_the_run_at_once_and_another_segment_goes_on(database: str) -> None:
    world = World()
    script: list[Turn] = [Calls([Call("crm.search", {"text": str(n)})]) for n in range(3)]
    async with harness(
        tools=[world.read()],
        script=[*script, Say("Done.")],
        database_url=database,
        timings=Timings(lease_s=2, renew_s=0.5, slice_s=0.0),
    ) as h:
        run_id = await h.start()
        assert (await h.advance(run_id)) == "released"
        h.platform.leader._timings = Timings(lease_s=2, renew_s=0.5)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("crm.search") == ["0", "1", "2"]
        assert EventName.RUN_NUDGED in [event.name for event in h.bus.events]


@pytest.mark.guarantee("J5")
@pytest.mark.parametrize("way_out", ["release", "park", "finish"])
async def test_a_renewal_that_comes_after_the_lease_was_given_back_stops_nothing(database: str, way_out: str) -> None:
    world = World()
    quick = Timings(lease_s=2, renew_s=0.01, slice_s=0 if way_out == "release" else 60)
    ways: dict[str, tuple[Turn, str]] = {
        "release": (LOOK, "released"),
        "park": (MAIL, "parked"),
        "finish": (Say("Done."), "succeeded"),
    }
    turn, became = ways[way_out]
    tools = [world.read(), world.send()]
    async with harness(tools=tools, script=[turn, Say("Done.")], database_url=database, timings=quick) as h:
        run_id = await h.start()
        renewed_too_late(h.platform.leader._store, way_out)
        assert await h.advance(run_id) == became


async def test_a_worker_that_is_asked_to_stop_finishes_the_call_in_hand_and_releases(database: str) -> None:
    world = World()
    made: list[Harness] = []

    async def stops(_ctx: CallContext, _args: Any) -> Any:
        made[0].platform.leader.draining.ask()
        return Done(id="1")

    turn = Calls([Call("notes.save", {"text": "a"}), Call("notes.save", {"text": "b"})])
    async with harness(tools=[world.write(does=stops)], script=[turn, Say("Done.")], database_url=database) as h:
        made.append(h)
        run_id = await h.start()
        assert await h.advance(run_id) == "released"
        assert world.of("notes.save") == ["a"]
        assert [role for role, _ in await h.messages(run_id)] == ["user", "assistant", "tool"]
        h.platform.leader.draining.asked = False
        made.clear()
        h.platform.leader.draining.ask = lambda: None  # type: ignore[method-assign]
        made.append(h)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("notes.save") == ["a", "b"]


@pytest.mark.guarantee("J5")
async def test_a_lease_that_is_stolen_in_mid_segment_stops_it_and_its_late_commit_is_refused(database: str) -> None:
    world = World()
    started, go = asyncio.Event(), asyncio.Event()

    async def waits(_ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) > 1:
            return Done(id="second")
        started.set()
        await asyncio.wait_for(go.wait(), 10)
        return Done(id="first")

    tool = world.write(does=waits, idempotency="idempotent")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        first = asyncio.create_task(h.advance(run_id))
        await asyncio.wait_for(started.wait(), 20)
        await execute(h, "update agent.runs set fence = fence + 1, lease_expires_at = clock_timestamp()")
        assert await asyncio.wait_for(first, 5) == "lost"
        [claim] = await journal(h, run_id)
        assert claim["state"] == "processing"
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
        assert (await h.settle(run_id)).state == "succeeded"
        spans = await h.calls(run_id)
        assert [span["status"] for span in spans] == ["lost", "ok"]
        assert all(span["state"] == "closed" for span in (await h.tree(run_id)).spans)


@pytest.mark.guarantee("J5")
async def test_a_late_worker_that_comes_back_after_its_claim_was_taken_over_writes_nothing(database: str) -> None:
    world = World()
    started, go = asyncio.Event(), asyncio.Event()

    async def waits(_ctx: CallContext, _args: Any) -> Any:
        if len(world.effects) > 1:
            return Done(id="second")
        started.set()
        await asyncio.wait_for(go.wait(), 10)
        return Done(id="late")

    tool = world.write(does=waits, idempotency="idempotent")
    async with harness(tools=[tool], script=[SAVE, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        store = h.platform.run_store
        renew = store.renew

        async def blind(lease: Lease, *, lease_s: float) -> Renewed:
            return Renewed(cancelled=False)

        store.renew = blind  # type: ignore[method-assign]
        first = asyncio.create_task(h.advance(run_id))
        await asyncio.wait_for(started.wait(), 20)
        store.renew = renew  # type: ignore[method-assign]
        # the first worker hangs, for longer than its lease and its claim
        await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
        assert (await h.settle(run_id)).state == "succeeded"
        go.set()
        assert await asyncio.wait_for(first, 5) == "lost"
        [claim] = await journal(h, run_id)
        assert b"second" in claim["output"]
        [answer] = [json.loads(text) for role, text in await h.messages(run_id) if role == "tool"]
        assert answer["data"] == {"id": "second"}
        assert [effect["kind"] for effect in (await h.tree(run_id)).effects] == ["completed"]


async def test_every_write_of_a_leader_whose_fence_is_gone_is_refused(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=5)
        assert led is not None
        await execute(h, "update agent.runs set fence = fence + 1")
        message = RunMessage(id="m", role="user", body=b"{}", trust=Trust.USER)
        append = Append(format="f", messages=[message])
        store = h.platform.run_store
        assert await store.append(led.lease, append) is None
        assert await store.park(led.lease, append, [], expires_s=1) is None
        assert await store.release(led.lease, append, due_at=None, orderly=True) is None
        assert await store.finish(led.lease, append, RunEnd(state="succeeded")) is None
        assert not await store.renew(led.lease, lease_s=5)
        assert len(await store.messages(led.lease, format=h.platform.loop.format)) == 1


async def test_a_message_that_is_appended_twice_is_stored_once_and_the_order_stays(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=5)
        assert led is not None
        store = h.platform.run_store

        def message(name: str) -> RunMessage:
            return RunMessage(id=name, role="user", body=name.encode(), trust=Trust.USER)

        await execute(h, "update agent.run_messages set format = 'f'")
        for batch in (["a", "b"], ["b", "c"], ["a", "d"], []):
            assert await store.append(led.lease, Append(format="f", messages=[message(n) for n in batch])) is not None
        assert [m.id for m in await store.messages(led.lease, format="f")][1:] == ["a", "b", "c", "d"]


@pytest.mark.guarantee("W4")
async def test_a_segment_that_cannot_even_begin_ends_the_run_with_a_reason(database: str) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[SAVE, Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        await execute(h, """update agent.runs set definition = definition || '{"model": null}'::jsonb""")
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "crash_loop")


@pytest.mark.guarantee("W4")
@pytest.mark.parametrize("how", ["format", "body"])
async def test_a_history_nobody_can_read_ends_the_run_and_nothing_runs(database: str, how: str) -> None:
    world = World()
    async with harness(tools=[world.write()], script=[SAVE, Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        change = "format = 'other/9'" if how == "format" else "body = 'no json'::bytea"
        await execute(h, f"update agent.run_messages set {change}")
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "history_unreadable")
        assert world.effects == []


@pytest.mark.guarantee("W4")
async def test_a_process_that_dies_again_and_again_ends_the_run_as_a_crash_loop(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        for _ in range(5):
            assert await h.platform.run_store.take(h.organization_id, run_id, lease_s=0) is not None
        settled = await h.settle(run_id)
        assert (settled.state, settled.error_code) == ("failed", "crash_loop")


@pytest.mark.guarantee("W1")
async def test_a_bus_that_is_broken_loses_nothing_and_the_sweep_sends_it(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        h.bus.broken = True
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        assert h.bus.events == []
        assert await h.platform.outbox.sweep() == 0  # each was tried a moment ago
        h.bus.broken = False
        await execute(h, "update agent.outbox set next_attempt_at = clock_timestamp()")
        assert await h.platform.sweeper.outbox() == 2
        assert {event.name for event in h.bus.events} == {EventName.RUN_REQUESTED, EventName.RUN_DECIDED}
        assert await h.platform.sweeper.outbox() == 0
        [row] = await rows(h, "select count(*) as pending from agent.outbox where state = 'pending'")
        assert row["pending"] == 0


@pytest.mark.guarantee("W1")
async def test_a_run_whose_event_was_lost_for_good_is_found_by_the_sweep(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        await execute(h, "delete from agent.outbox")
        h.bus.events.clear()
        assert await h.platform.sweeper.runs() == 1
        assert [event.run_id for event in h.bus.events] == [run_id]
        assert await h.platform.sweeper.runs() == 0  # nudged a moment ago


@pytest.mark.guarantee("W2", "A3")
async def test_nudges_twice_out_of_order_and_after_the_end_change_nothing(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        for _ in range(3):
            assert await h.advance(run_id) == "idle"
        await h.decide(run_id)
        states = await asyncio.gather(*(h.advance(run_id) for _ in range(6)))
        assert sorted(set(states)) == ["idle", "succeeded"]
        before = await run_row(h, run_id)
        for _ in range(3):
            assert await h.advance(run_id) == "idle"
        assert await run_row(h, run_id) == before
        assert world.effects == [("mail.send", "hello")]
        assert await h.advance(uuid4()) == "idle"


@pytest.mark.guarantee("W4")
async def test_no_span_stays_open_when_a_run_has_ended(database: str) -> None:
    world = World()
    async with harness(tools=[world.read()], script=[LOOK, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        dead = await h.platform.run_store.take(h.organization_id, run_id, lease_s=0.3)
        assert dead is not None
        segment = await h.platform.leader._open(dead, SegmentStop())
        assert await h.platform.run_store.append(dead.lease, segment.take()) is not None
        await asyncio.sleep(0.35)
        assert (await h.settle(run_id)).state == "succeeded"
        spans = (await h.tree(run_id)).spans
        assert [(span["kind"], span["status"]) for span in spans if span["kind"] == "segment"] == [
            ("segment", "lost"),
            ("segment", "ok"),
        ]
        assert all(span["state"] == "closed" for span in spans)


async def test_a_run_that_goes_on_waits_for_nothing_any_more(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        assert (await h.tree(run_id)).run["parked_on"] == "approval"
        await h.decide(run_id)
        assert await h.platform.run_store.take(h.organization_id, run_id, lease_s=1) is not None
        assert (await h.tree(run_id)).run["parked_on"] is None


def uncertain_tool(world: World) -> Any:
    async def breaks(_ctx: CallContext, _args: Any) -> Any:
        if world.of("notes.save") == ["milk"]:
            raise ConnectionResetError("the line broke")
        return Done(id="again")

    return world.write(does=breaks, risk="medium")


@pytest.mark.guarantee("J3", "T1")
async def test_an_operator_confirms_an_unknown_outcome_with_evidence_and_nobody_else_may(database: str) -> None:
    world = World()
    async with harness(tools=[uncertain_tool(world)], script=[SAVE, SAVE, Say("x")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        settled = await h.settle(run_id)
        assert (settled.state, settled.partial_reason) == ("succeeded", "outcome_unknown: notes.save")
        assert len(world.effects) == 1  # the repeat was answered, not run
        [call] = await h.uncertain(run_id)
        approver, elsewhere = uuid4(), uuid4()
        await h.platform.approval_store.put_member(h.organization_id, approver, Role.APPROVER)
        await h.platform.approval_store.put_member(elsewhere, h.user_id, Role.ADMIN)
        journal_service = h.platform.journal
        with pytest.raises(NotPermitted, match="operator"):
            await journal_service.settle(h.organization_id, call.ref, happened=True, user_id=approver, evidence="seen")
        with pytest.raises(NotFound):
            await journal_service.settle(elsewhere, call.ref, happened=True, user_id=h.user_id, evidence="seen")
        with pytest.raises(Conflict, match="evidence"):
            await journal_service.settle(h.organization_id, call.ref, happened=True, user_id=h.user_id, evidence=" ")
        evidence = "It stands in the list. \x00 \ud800 ü"
        await journal_service.settle(h.organization_id, call.ref, happened=True, user_id=h.user_id, evidence=evidence)
        [row] = await journal(h, run_id)
        assert (row["state"], row["resolved_by"]) == ("completed", h.user_id)
        tree = await h.tree(run_id)
        assert [effect["kind"] for effect in tree.effects] == ["uncertain", "confirmed"]
        assert tree.run["has_uncertain"] is False
        with pytest.raises(Conflict, match=f"settled already: confirmed: it happened, said {h.user_id}"):
            await journal_service.settle(
                h.organization_id, call.ref, happened=False, user_id=h.user_id, evidence="it is not there"
            )


@pytest.mark.guarantee("J3", "J7")
async def test_a_denied_outcome_frees_the_call_under_a_new_key_and_a_new_approval(database: str) -> None:
    world = World()
    settled_by: list[str] = []

    async def looks(ctx: CallContext, _args: Any) -> Any:
        """While the run reads on, an operator finds that the effect did not happen."""
        [call] = await made[0].uncertain(ctx.run_id)
        await made[0].platform.journal.settle(
            ctx.organization_id, call.ref, happened=False, user_id=made[0].user_id, evidence="the list does not hold it"
        )
        settled_by.append(call.ref)
        return Done(id="1")

    made: list[Harness] = []
    tools = [uncertain_tool(world), world.read(does=looks)]
    async with harness(tools=tools, script=[SAVE, LOOK, SAVE, Say("Done.")], database_url=database) as h:
        made.append(h)
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        parked = await h.settle(run_id)
        assert (parked.state, len(settled_by)) == ("parked", 1)
        assert world.of("notes.save") == ["milk"]
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("notes.save") == ["milk", "milk"]
        keys = [key for (tool, _), key in zip(world.effects, world.keys, strict=True) if tool == "notes.save"]
        assert len(set(keys)) == 2
        assert [e["kind"] for e in (await h.tree(run_id)).effects] == ["uncertain", "denied", "completed"]


@pytest.mark.guarantee("J5")
async def test_the_sweep_settles_claims_that_nobody_proposes_again(database: str) -> None:
    world = World()
    started = asyncio.Event()

    async def hangs(_ctx: CallContext, _args: Any) -> Any:
        started.set()
        await asyncio.sleep(30)

    tools = [
        world.write("notes.save", hangs),
        world.write("notes.quiet", hangs, watermark="at_transport"),
    ]
    async with harness(
        tools=tools,
        script=[lambda history: SAVE if "loud" in history[1].text else Calls([Call("notes.quiet", {"text": "b"})])],
        database_url=database,
    ) as h:
        runs = [await h.start("loud"), await h.start("quiet")]
        for run_id in runs:
            started.clear()
            task = asyncio.create_task(h.advance(run_id))
            await asyncio.wait_for(started.wait(), 20)
            await execute(h, "update agent.runs set fence = fence + 1 where id = %(id)s", id=run_id)
            assert await asyncio.wait_for(task, 5) == "lost"
            await h.platform.runs.cancel(h.organization_id, run_id)
        await execute(h, "update agent.runs set lease_expires_at = clock_timestamp()")
        for run_id in runs:
            assert (await h.settle(run_id)).state == "cancelled"
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp() - interval '5 min'")
        await asyncio.gather(*(h.platform.sweeper.runs() for _ in range(4)))
        assert [row["state"] for row in await journal(h, runs[0])] == ["uncertain"]
        assert await journal(h, runs[1]) == []
        loud, quiet = [await h.tree(run_id) for run_id in runs]
        assert [effect["kind"] for effect in loud.effects] == ["uncertain"]
        assert [effect["kind"] for effect in quiet.effects] == ["released"]
        assert loud.run["has_uncertain"] is True
        assert all(span["state"] == "closed" for tree in (loud, quiet) for span in tree.spans)
        [row] = await rows(h, "select count(*) as open from agent.idempotency_keys where state = 'processing'")
        assert row["open"] == 0
