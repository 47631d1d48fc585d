"""What happened to a run is told in numbered rows, beside the change each tells of (ADR 0031)."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from agentic.contract.errors import NotFound
from agentic.services.runs.events import RunEvent, RunEventKind
from agentic.services.runs.models import Lease
from agentic.services.tools.call_events import CallEventName
from agentic.testing import Call, Calls, Fail, Harness, Say, harness
from core_world import World, execute

MAIL = Calls([Call("mail.send", {"text": "the secret of the letter"})])
SAVE = Calls([Call("notes.save", {"text": "milk"})])
QUIET = {"text", "text.reset"}


async def told(h: Harness, run_id: UUID) -> list[RunEvent]:
    """Every event of a run; their numbers are 1, 2, 3 …"""
    page = await h.platform.events.events(h.organization_id, run_id, after=0, limit=1000)
    assert [event.seq for event in page.events] == list(range(1, len(page.events) + 1))
    return list(page.events)


def kinds(events: list[RunEvent]) -> list[str]:
    return [event.kind for event in events]


def words(events: list[RunEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.kind == RunEventKind.TEXT)


async def test_a_run_that_asks_a_person_tells_every_step_in_order(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        assert (await h.settle(run_id)).state == "succeeded"
        events = await told(h, run_id)
        assert [kind for kind in kinds(events) if kind not in QUIET] == [
            "run.started",
            "segment.started",
            "message.stored",
            "tool.call.proposed",
            "approval.requested",
            "run.parked",
            "approval.approved",
            "segment.started",
            "tool.call.proposed",
            "tool.call.authorized",
            "tool.call.started",
            "tool.call.completed",
            "message.stored",
            "run.succeeded",
        ]
        assert words(events) == "Sent."
        assert kinds(events).index("text") == len(events) - 3
        [parked] = [event for event in events if event.kind == "run.parked"]
        assert parked.data == {"on": ["approval"]}


@pytest.mark.guarantee("B2")
async def test_no_event_holds_an_argument_or_a_result(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await h.start("a task only for the model")
        await h.settle(run_id)
        await h.decide(run_id, comment="a word of the person")
        await h.settle(run_id)
        everything = json.dumps([event.data for event in await told(h, run_id)], default=str)
        for private in ("secret of the letter", "mail.send-1", "a task only", "a word of the person"):
            assert private not in everything
        assert "mail.send" in everything


async def test_every_name_an_event_may_have_is_known_to_the_database(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        for kind in [*RunEventKind, *CallEventName]:
            await execute(
                h,
                "insert into agent.run_events (organization_id, run_id, kind, data) "
                "values (%(organization_id)s, %(run_id)s, %(kind)s, '{}')",
                organization_id=h.organization_id,
                run_id=run_id,
                kind=str(kind),
            )
        assert {*RunEventKind, *CallEventName} - {"text"} <= set(kinds(await told(h, run_id)))


async def test_a_cancel_while_nobody_leads_is_told_when_it_is_asked_and_when_it_is_obeyed(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id)
        await h.settle(run_id)
        assert kinds(await told(h, run_id))[-4:] == [
            "run.cancel_requested",
            "segment.started",
            "run.cancelled",
            "approval.cancelled",
        ]


async def test_an_approval_the_sweep_expires_is_told(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL], database_url=database) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await execute(
            h,
            "update agent.approvals set expires_at = clock_timestamp() where run_id = %(run_id)s",
            run_id=run_id,
        )
        await h.platform.sweeper.runs()
        assert kinds(await told(h, run_id))[-1] == "approval.expired"


async def test_a_provider_that_is_down_releases_the_run_and_says_until_when(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], failures={0: Fail()}, database_url=database) as h:
        run_id = await h.start()
        await h.advance(run_id)
        released = (await told(h, run_id))[-1]
        assert released.kind == "run.released"
        assert released.data["due_at"] is not None
        assert (await h.settle(run_id)).answer == "Hi."


async def test_writers_beside_each_other_leave_no_gap_and_lose_nothing(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()

        async def write(kind: RunEventKind) -> None:
            await execute(
                h,
                "insert into agent.run_events (organization_id, run_id, kind) values (%(organization_id)s, %(run_id)s, %(kind)s)",
                organization_id=h.organization_id,
                run_id=run_id,
                kind=str(kind),
            )

        await asyncio.gather(*(write(RunEventKind.UNCERTAIN) for _ in range(40)))
        assert len(await told(h, run_id)) == 41


async def test_a_number_is_seen_only_when_all_before_it_are(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        params = {"organization_id": h.organization_id, "run_id": run_id}
        insert = "insert into agent.run_events (organization_id, run_id, kind) values (%(organization_id)s, %(run_id)s, 'run.uncertain')"
        async with await psycopg.AsyncConnection.connect(database) as slow:
            await slow.execute(insert, params)  # number 2, and not committed
            quick = asyncio.create_task(execute(h, insert, **params))
            await _somebody_waits(slow)
            assert not quick.done()
            await slow.rollback()
        await quick
        assert [event.seq for event in await told(h, run_id)] == [1, 2]


async def test_a_transition_that_is_taken_back_is_not_told(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        async with await psycopg.AsyncConnection.connect(database) as connection:
            await connection.execute(
                "update agent.runs set state = 'cancelled', finished_at = clock_timestamp() where id = %s", (run_id,)
            )
            await connection.rollback()
        assert (await h.settle(run_id)).state == "succeeded"
        assert "run.cancelled" not in kinds(await told(h, run_id))


async def test_events_are_not_altered_nor_removed(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        await h.start()
        for statement in ("update agent.run_events set kind = 'run.failed'", "delete from agent.run_events"):
            with pytest.raises(psycopg.errors.RestrictViolation):
                await execute(h, statement)


@pytest.mark.guarantee("T1")
async def test_the_events_of_another_organization_are_those_of_a_missing_run(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        with pytest.raises(NotFound):
            await h.platform.events.events(uuid4(), run_id, after=0, limit=10)
        with pytest.raises(NotFound):
            await h.platform.events.events(h.organization_id, uuid4(), after=0, limit=10)


# -- the model's words ----------------------------------------------------------------------------------------------------------------


async def test_the_words_of_an_answer_that_was_given_up_are_superseded(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        lease = await _led(h, run_id)
        assert await h.platform.events.tell(lease, {"request": 1, "offset": 0, "text": "Dear"})
        await execute(
            h, "update agent.runs set lease_expires_at = clock_timestamp() where id = %(run_id)s", run_id=run_id
        )  # its leader has died
        assert (await h.settle(run_id)).state == "succeeded"
        events = await told(h, run_id)
        assert kinds(events)[2:5] == ["text", "text.reset", "segment.started"]
        assert events[4].data["after_lost"] is True
        assert words(events[4:]) == "Hi."
        assert "text.reset" not in kinds(events[4:])


async def test_a_segment_that_lost_its_lease_tells_no_more_words(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        stale = await _led(h, run_id)
        await execute(
            h, "update agent.runs set lease_expires_at = clock_timestamp() where id = %(run_id)s", run_id=run_id
        )
        assert not await h.platform.events.tell(stale, {"request": 1, "offset": 0, "text": "late"})
        await h.settle(run_id)
        assert not await h.platform.events.tell(stale, {"request": 1, "offset": 0, "text": "later"})
        assert words(await told(h, run_id)) == "Hi."


async def test_words_under_way_while_the_segment_ends_are_told_before_its_end_or_not_at_all(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        lease = await _led(h, run_id)
        async with await psycopg.AsyncConnection.connect(database) as ending:
            await ending.execute(
                "update agent.runs set state = 'failed', error_code = 'deadline', finished_at = clock_timestamp(), lease_expires_at = null "
                "where id = %s",
                (run_id,),
            )
            late = asyncio.create_task(h.platform.events.tell(lease, {"request": 1, "offset": 0, "text": "late"}))
            await _somebody_waits(ending)
            await ending.commit()
        assert not await late
        assert kinds(await told(h, run_id))[-1] == "run.failed"


async def _led(h: Harness, run_id: UUID) -> Lease:
    led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    assert led is not None
    return led.lease


async def _somebody_waits(connection: psycopg.AsyncConnection[Any]) -> None:
    """Looks through the connection whose lock is waited for: behind a pooler there may be no third one."""
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.timeout(20):
        while True:
            await connection.execute("select pg_stat_clear_snapshot()")  # else a transaction sees what it saw first
            if (await connection.execute(waiting)).rowcount:
                return
            await asyncio.sleep(0.01)
