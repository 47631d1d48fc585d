"""Many at once, released at a barrier: one decision, one effect, one answer, and no deadlock."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from agentic.contract.errors import ClaimLost, Conflict, StorageUnavailable
from agentic.contract.principal import Role
from agentic.runtime.agent.aborts import SegmentStop
from agentic.runtime.agent.timings import Timings
from agentic.services.approvals.models import Approval, Verdict
from agentic.services.tools.calls import ToolCall
from agentic.services.tools.context import CallContext
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute, journal, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])
T = TypeVar("T")


async def at_once(count: int, act: Callable[[int], Awaitable[T]]) -> list[T | BaseException]:
    """Everybody does it in the same moment."""
    barrier = asyncio.Barrier(count)

    async def one(number: int) -> T:
        await barrier.wait()
        return await act(number)

    async with asyncio.timeout(20):
        return await asyncio.gather(*(one(number) for number in range(count)), return_exceptions=True)


async def decide(h: Harness, approval: Approval, user_id: Any, verdict: Verdict) -> Approval:
    return await h.platform.approvals.decide(h.organization_id, approval.id, user_id=user_id, verdict=verdict)


@pytest.mark.guarantee("A3")
async def test_twenty_people_decide_one_approval_and_one_of_them_counts(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        people = [uuid4() for _ in range(20)]
        for person in people:
            await h.platform.approval_store.put_member(h.organization_id, person, Role.APPROVER)
        run_id = await h.start()
        [approval] = (await h.settle(run_id)).pending
        verdicts = list(Verdict)
        answers = await at_once(20, lambda n: decide(h, approval, people[n], verdicts[n % 2]))
        decided = [answer for answer in answers if isinstance(answer, Approval)]
        refused = [answer for answer in answers if not isinstance(answer, Approval)]
        assert len(decided) == len(refused) == 10  # the same answer again succeeds, the opposite one is a conflict
        assert all(isinstance(error, Conflict) for error in refused)
        assert len({(answer.status, answer.decided_by) for answer in decided}) == 1
        nudges = await rows(h, "select id from agent.outbox where name like '%%decided%%'")
        assert len(nudges) == 1
        states = await at_once(20, lambda _n: h.advance(run_id))
        assert [state for state in states if state != "idle"] == ["succeeded"]
        assert len(world.effects) == (1 if decided[0].status == "approved" else 0)


@pytest.mark.guarantee("J1", "J2")
async def test_twenty_workers_lead_one_run_and_one_of_them_has_it(database: str) -> None:
    world = World()
    turn = Calls([Call("notes.save", {"text": str(n)}) for n in range(5)])
    async with harness(tools=[world.write()], script=[turn, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        states = await at_once(20, lambda _n: h.advance(run_id))
        assert sorted(states) == ["idle"] * 19 + ["succeeded"]  # type: ignore[type-var]
        assert world.of("notes.save") == list("01234")


@pytest.mark.guarantee("J1", "J2")
async def test_fifty_callers_of_one_call_have_one_effect_and_the_others_its_answer_or_wait(database: str) -> None:
    """The invoker itself, under one lease: what a replayed step and a workflow branch can do to it."""
    world = World()
    async with harness(tools=[world.write()], script=[Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=30)
        assert led is not None
        segment = await h.platform.leader._open(led, SegmentStop())
        call = ToolCall(tool="notes.save", arguments_text='{"text": "once"}')
        answers = await at_once(50, lambda _n: h.platform.invoker.invoke(call, segment.inv))
        assert world.effects == [("notes.save", "once")]
        kinds = {type(answer).__name__ for answer in answers}
        assert kinds <= {"ToolResult", "ClaimInFlight"}
        data = {json.dumps(answer.data) for answer in answers if type(answer).__name__ == "ToolResult"}  # type: ignore[union-attr]
        assert data == {'{"id": "notes.save-1"}'}
        [claim] = await journal(h, run_id)
        assert (claim["state"], claim["attempt"]) == ("completed", 1)


@pytest.mark.guarantee("J1", "J5", "J7")
async def test_fifty_callers_find_a_claim_whose_worker_is_gone_and_one_of_them_takes_it_over(database: str) -> None:
    world, entered, woken = World(), asyncio.Event(), asyncio.Event()

    async def does(_ctx: CallContext, _args: Any) -> Any:
        number = len(world.effects)
        if number == 1:
            entered.set()
            await woken.wait()
        return Done(id=f"attempt-{number}")

    tool = world.write(does=does, idempotency="conditional", vendor_key_ttl_s=3600)
    async with harness(tools=[tool], script=[Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=30)
        assert led is not None
        segment = await h.platform.leader._open(led, SegmentStop())
        call = ToolCall(tool="notes.save", arguments_text='{"text": "once"}')
        stalled = asyncio.create_task(h.platform.invoker.invoke(call, segment.inv))
        async with asyncio.timeout(20):
            await entered.wait()
        await execute(h, "update agent.idempotency_keys set lease_expires_at = clock_timestamp()")
        answers = await at_once(50, lambda _n: h.platform.invoker.invoke(call, segment.inv))
        woken.set()
        with pytest.raises(ClaimLost):
            await stalled
        assert {type(answer).__name__ for answer in answers} <= {"ToolResult", "ClaimInFlight"}
        data = {json.dumps(answer.data) for answer in answers if type(answer).__name__ == "ToolResult"}  # type: ignore[union-attr]
        assert data == {'{"id": "attempt-2"}'}
        assert len(world.effects) == 2
        assert len(set(world.keys)) == 1
        [claim] = await journal(h, run_id)
        assert (claim["state"], claim["attempt"]) == ("completed", 2)


@pytest.mark.guarantee("A3", "A4", "W4")
async def test_deciding_expiring_cancelling_and_leading_at_once_end_in_one_story(database: str) -> None:
    """No deadlock, no lost wake-up: whoever wins, the run ends and what it did agrees with its approvals."""
    world = World()
    turn = Calls([Call("mail.send", {"text": text}) for text in "ab"])
    timings = Timings(lease_s=5, renew_s=1, approval_expires_s=0.6)
    async with harness(tools=[world.send()], script=[turn, Say("Done.")], database_url=database, timings=timings) as h:
        runs = [await h.start() for _ in range(6)]
        pending: list[Approval] = []
        for run_id in runs:
            pending += (await h.settle(run_id)).pending

        async def act(number: int) -> Any:
            match number % 4:
                case 0:
                    return await decide(h, pending[number % 12], h.user_id, Verdict.APPROVED)
                case 1:
                    return await h.platform.sweeper.runs()
                case 2:
                    return await h.platform.runs.cancel(h.organization_id, runs[number % 6])
                case _:
                    return await h.advance(runs[number % 6])

        outcomes = await at_once(48, act)
        assert [o for o in outcomes if isinstance(o, StorageUnavailable)] == []
        assert [o for o in outcomes if isinstance(o, BaseException) and not isinstance(o, Conflict)] == []
        await asyncio.sleep(0.6)
        for run_id in runs:
            settled = await h.settle(run_id)
            assert settled.state in ("succeeded", "cancelled")
            tree = await h.tree(run_id)
            approved = [approval for approval in tree.approvals if approval["status"] == "approved"]
            assert len(tree.effects) <= len(approved)
            assert all(approval["status"] != "pending" for approval in tree.approvals)
        await h.platform.sweeper.runs()
        [row] = await rows(h, "select count(*) as open from agent.approvals where status = 'pending'")
        assert row["open"] == 0


async def test_a_decision_and_the_park_of_the_same_run_do_not_wait_for_each_other(database: str) -> None:
    """The second of two questions is decided while the run, led past the first, parks on it again; many times."""
    world = World()
    turn = Calls([Call("mail.send", {"text": text}) for text in "ab"])
    async with harness(tools=[world.send()], script=[turn, Say("Done.")], database_url=database) as h:
        runs = [await h.start() for _ in range(12)]
        seconds: list[Approval] = []
        for run_id in runs:
            by_text = {json.loads(a.arguments_text)["text"]: a for a in (await h.settle(run_id)).pending}
            await decide(h, by_text["a"], h.user_id, Verdict.APPROVED)
            seconds.append(by_text["b"])

        async def act(number: int) -> Any:
            place = number // 2
            if number % 2:
                return await h.advance(runs[place])
            await asyncio.sleep(0.01 * place)
            return await decide(h, seconds[place], h.user_id, Verdict.APPROVED)

        outcomes = await at_once(24, act)
        assert [o for o in outcomes if isinstance(o, BaseException)] == []
        for run_id in runs:
            assert (await h.settle(run_id)).state == "succeeded"
            assert len((await h.tree(run_id)).approvals) == 2
        assert len(world.effects) == 24


async def test_the_chains_of_a_run_stay_whole_when_several_write_them_at_once(database: str) -> None:
    """A sweep and an operator beside the leader: no line is lost and none refers to a wrong one."""
    async with harness(tools=[], script=[Say("Done.")], database_url=database) as h:
        run_id = await h.start()

        async def add(number: int) -> int:
            return await execute(
                h,
                "insert into agent.effects (organization_id, run_id, kind, tool, scope, key, epoch, attempt)"
                " values (%(organization_id)s, %(run_id)s, 'completed', 'a.b', 's', %(key)s, 1, 1)",
                organization_id=h.organization_id,
                run_id=run_id,
                key=str(number),
            )

        assert await at_once(24, add) == [1] * 24
        chain = await rows(h, "select seq, prev_hash, hash from agent.effects order by seq")
        assert [line["seq"] for line in chain] == list(range(1, 25))
        assert [line["prev_hash"] for line in chain] == ["", *(line["hash"] for line in chain[:-1])]


@pytest.mark.guarantee("W1")
async def test_two_senders_of_the_outbox_do_not_send_a_row_twice_at_once(database: str) -> None:
    async with harness(tools=[], script=[Say("Done.")], database_url=database) as h:
        h.bus.broken = True
        for _ in range(30):
            await h.start()
        await execute(h, "update agent.outbox set next_attempt_at = clock_timestamp()")
        h.bus.broken = False
        arrived = await at_once(8, lambda _n: h.platform.outbox.sweep())
        assert sum(count for count in arrived if isinstance(count, int)) == 30
        assert len({event.id for event in h.bus.events}) == len(h.bus.events) == 30
