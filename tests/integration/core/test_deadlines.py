"""A run past its deadline ends by the sweep alone, whatever state it is in and whatever event was lost; a waiting run is left alone."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from agentic.contract.principal import RunCeilings
from agentic.services.runs.models import Append
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])


async def queued(h: Harness, run_id: UUID) -> None:
    """Nobody has led it."""


async def released(h: Harness, run_id: UUID) -> None:
    """It comes back in a year."""
    led = await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    assert led is not None
    nothing = Append(format=h.platform.loop.format)
    assert await h.platform.run_store.release(led.lease, nothing, due_in_s=365 * 24 * 3600, orderly=True)


async def left_by_a_dead_leader(h: Harness, run_id: UUID) -> None:
    assert await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
    await execute(h, "update agent.runs set lease_expires_at = clock_timestamp() where id = %(id)s", id=run_id)


async def parked_on_a_person(h: Harness, run_id: UUID) -> None:
    assert (await h.settle(run_id)).state == "parked"


async def parked_on_a_job(h: Harness, run_id: UUID) -> None:
    """As a provider's job leaves it that never calls back."""
    await parked_on_a_person(h, run_id)
    await execute(
        h, "update agent.run_waits set kind = 'provider_job', ref = gen_random_uuid() where run_id = %(id)s", id=run_id
    )


STATES = [queued, released, left_by_a_dead_leader, parked_on_a_person, parked_on_a_job]


async def sweep_alone(h: Harness) -> list[UUID]:
    """One sweep long after every event was lost, and what its nudges cause; which runs it nudged."""
    await execute(
        h,
        "update agent.outbox set state = 'sent', sent_at = clock_timestamp(), created_at = created_at - interval '1 hour'",
    )
    h.bus.events.clear()
    await h.platform.sweeper.runs()
    nudged = [event.run_id for event in h.bus.events if event.run_id is not None]
    for run_id in nudged:
        await h.platform.leader.advance(h.organization_id, run_id)
    return nudged


@pytest.mark.guarantee("W3", "W4")
@pytest.mark.parametrize("bring_into", STATES)
async def test_a_run_past_its_deadline_ends_by_the_sweep_alone(
    database: str, bring_into: Callable[[Harness, UUID], Awaitable[None]]
) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await h.start()
        await bring_into(h, run_id)
        await execute(h, "update agent.runs set deadline_at = clock_timestamp()")
        assert await sweep_alone(h) == [run_id]
        [run] = await rows(h, "select state, error_code, lease_expires_at, finished_at from agent.runs")
        assert (run["state"], run["error_code"], run["lease_expires_at"]) == ("failed", "deadline", None)
        assert run["finished_at"] is not None
        assert not await rows(h, "select from agent.approvals where status = 'pending'")
        assert not await rows(h, "select from agent.run_waits")
        assert await sweep_alone(h) == []
        assert world.effects == []


@pytest.mark.guarantee("W3")
@pytest.mark.parametrize("bring_into", [released, parked_on_a_person, parked_on_a_job])
async def test_a_run_that_waits_is_left_alone_however_long_it_waits_and_holds_nothing(
    database: str, bring_into: Callable[[Harness, UUID], Awaitable[None]]
) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database) as h:
        run_id = await h.start()
        await bring_into(h, run_id)
        await execute(h, "update agent.approvals set expires_at = expires_at + interval '1 year'")
        await execute(
            h,
            "update agent.runs set created_at = created_at - interval '300 days', started_at = started_at - interval '300 days', "
            "leased_at = leased_at - interval '300 days', deadline_at = clock_timestamp() + interval '1 day'",
        )
        [before] = await rows(h, "select * from agent.runs")
        for _ in range(3):
            assert await sweep_alone(h) == []
        [after] = await rows(h, "select * from agent.runs")
        assert after == before
        assert after["lease_expires_at"] is None


@pytest.mark.guarantee("W3")
async def test_a_person_who_decides_after_weeks_finds_the_run_where_it_waited(database: str) -> None:
    world = World()
    ceilings = RunCeilings(max_run_duration_s=3600)
    async with harness(
        tools=[world.send()], script=[MAIL, Say("Sent.")], database_url=database, ceilings=ceilings
    ) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await execute(
            h,
            "update agent.runs set created_at = created_at - interval '25 days', started_at = started_at - interval '25 days', "
            "leased_at = leased_at - interval '25 days'",
        )
        await h.decide(run_id)
        await sweep_alone(h)
        assert (await h.settle(run_id)).state == "succeeded"
        assert world.of("mail.send") == ["hello"]


async def test_a_run_that_is_led_is_left_to_its_leader_also_past_its_deadline(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await h.start()
        assert await h.platform.run_store.take(h.organization_id, run_id, lease_s=60)
        await execute(h, "update agent.runs set deadline_at = clock_timestamp()")
        assert await sweep_alone(h) == []
