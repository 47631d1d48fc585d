"""Runs that runs start: never more than the parent may see and spend, never longer than it lives, stopped with it (ADR 0032)."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.errors import Conflict, NotFound, NotPermitted, ParentRefuses, ProgramFault
from agentic.contract.principal import Principal, RunCeilings
from agentic.contract.trust import Trust
from agentic.runtime.agent.definition import AgentDefinition
from agentic.runtime.agent.script import Turn
from agentic.services.approvals.models import Verdict
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import World, execute, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])


async def child(h: Harness, parent: UUID, text: str = "Help.", *, key: str = "", **given: Any) -> UUID:
    definition = given.pop("agent", h.agent.model_copy(update={"name": "helper"}))
    started = await h.platform.runs.start(
        definition,
        text,
        principal=Principal(organization_id=h.organization_id, user_id=given.pop("user_id", h.user_id)),
        request_key=key or str(uuid4()),
        parent=parent,
        **given,
    )
    return started.run_id


async def row(h: Harness, run_id: UUID) -> dict[str, Any]:
    [found] = await rows(h, "select *, context_trust::text as trust from agent.runs where id = %(id)s", id=run_id)
    return found


async def count(h: Harness) -> int:
    [found] = await rows(h, "select count(*) as runs from agent.runs")
    return int(found["runs"])


async def test_a_child_belongs_to_the_tree_of_its_parent_down_to_a_depth(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        root = await h.start()
        line = [root]
        for _ in range(5):
            line.append(await child(h, line[-1]))
        below = [await row(h, run) for run in line]
        assert [(each["root_run_id"], each["depth"]) for each in below] == [(root, n) for n in range(6)]
        assert [each["parent_run_id"] for each in below] == [None, *line[:-1]]
        with pytest.raises(ParentRefuses) as refused:
            await child(h, line[-1])
        assert refused.value.code == "too_deep"
        family = (await h.tree(line[3])).family
        assert [each["id"] for each in family] == line
        listed = await h.platform.runs.page(h.organization_id)
        assert {each["id"] for each in listed.rows} == set(line)


@pytest.mark.guarantee("T2")
async def test_a_child_has_the_tools_that_its_parent_has_and_a_grant_of_and_no_other(database: str) -> None:
    world = World()
    tools = [world.read(), world.write(), world.send()]
    async with harness(tools=tools, script=[Say("Hi.")], database_url=database) as h:
        some = h.agent.model_copy(update={"tools": ("crm.search", "notes.save")})
        root = await h.start(agent=some)
        below = await child(h, root)
        assert (await row(h, below))["definition"]["tools"] == ["crm.search", "notes.save"]
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "notes.save", active=False)
        assert (await row(h, await child(h, root)))["definition"]["tools"] == ["crm.search"]
        nothing = await h.start(agent=h.agent.model_copy(update={"name": "empty", "tools": ()}))
        first = await child(h, nothing)
        second = await child(h, first)
        assert [(await row(h, run))["tools"] for run in (first, second)] == [[], []]
        granted = await rows(h, "select tool from agent.grants where definition = 'helper' order by tool")
        assert [each["tool"] for each in granted] == ["crm.search", "notes.save"]


@pytest.mark.guarantee("D1")
async def test_a_tool_outside_the_parents_is_unknown_to_the_child(database: str) -> None:
    world = World()
    async with harness(tools=[world.read(), world.send()], script=[MAIL, Say("No.")], database_url=database) as h:
        root = await h.start(agent=h.agent.model_copy(update={"tools": ("crm.search",)}))
        below = await child(h, root)
        assert (await h.settle(below)).state == "succeeded"
        assert [call["code"] for call in await h.calls(below)] == ["unknown_tool"]
        assert world.effects == []


@pytest.mark.guarantee("D2")
async def test_a_grant_that_is_taken_from_a_run_is_taken_from_all_below_it_at_their_next_call(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        root = await h.start()
        middle = await child(h, root, agent=h.agent.model_copy(update={"name": "middle"}))
        below = await child(h, middle)
        beside = await h.start(agent=h.agent.model_copy(update={"name": "helper"}))
        for run in (below, beside):
            assert len((await h.settle(run)).pending) == 1
            await h.decide(run)
        await h.platform.catalogue.set_grant(h.organization_id, "tested", "mail.send", active=False)
        assert (await h.settle(below)).state == "succeeded"
        assert [call["code"] for call in await h.calls(below)] == [None, "denied"]
        assert world.effects == []
        await h.settle(beside)
        assert world.effects == [("mail.send", "hello")]


async def test_a_child_believes_no_more_than_its_parent_has_read(database: str) -> None:
    world = World()
    read = world.read("web.read", output_trust=Trust.EXTERNAL)
    script: list[Turn] = [Calls([Call("web.read", {"text": "page"})]), MAIL, Say("Done.")]
    async with harness(tools=[read, world.send()], script=script, database_url=database) as h:
        root = await h.start()
        before = await child(h, root)
        assert (await h.settle(root)).state == "parked"
        after = await child(h, root)
        assert [(await row(h, run))["trust"] for run in (before, after)] == ["user", "external"]


async def test_a_child_does_not_outlive_its_parent(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        principal = Principal(organization_id=h.organization_id, user_id=h.user_id)
        root = (
            await h.platform.runs.start(h.agent, "Go.", principal=principal, request_key="r", deadline_s=3600)
        ).run_id
        parent, long, short = (
            await row(h, root),
            await row(h, await child(h, root)),
            await row(h, await child(h, root, deadline_s=60)),
        )
        assert long["deadline_at"] == parent["deadline_at"]
        assert short["deadline_at"] < parent["deadline_at"] - timedelta(minutes=50)
        await execute(h, "update agent.runs set deadline_at = clock_timestamp() where id = %(id)s", id=root)
        with pytest.raises(ParentRefuses) as refused:
            await child(h, root)
        assert refused.value.code == "parent_over"


@pytest.mark.parametrize(("how", "code"), [("cancelled", "parent_cancelled"), ("over", "parent_over")])
async def test_a_parent_that_stops_or_is_over_is_refused_before_anything_exists(
    database: str, how: str, code: str
) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        root = await h.start()
        before = await child(h, root, key="k")
        if how == "cancelled":
            assert await h.platform.runs.cancel(h.organization_id, root)
        else:
            await h.settle(root)
        runs = await count(h)
        with pytest.raises(ParentRefuses) as refused:
            await child(h, root)
        assert refused.value.code == code
        assert await count(h) == runs
        assert await child(h, root, key="k") == before  # the answer of a start that was made stays
        with pytest.raises(Conflict, match="another input"):
            await child(h, root, "Other words.", key="k")


@pytest.mark.guarantee("T1")
async def test_a_parent_elsewhere_is_missing_and_one_of_somebody_else_is_not_permitted(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        root = await h.start()
        with pytest.raises(NotPermitted):
            await child(h, root, user_id=uuid4())
        h.organization_id = uuid4()
        for missing in (root, uuid4()):
            with pytest.raises(NotFound, match=str(missing)):
                await child(h, missing)
        with pytest.raises(ProgramFault, match="session or parent"):
            await child(h, root, session="s")
        assert await count(h) == 1


@pytest.mark.guarantee("W1", "W4")
async def test_cancelling_a_run_stops_everything_below_it_and_nothing_beside_it(database: str) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        root = await h.start()
        top, beside = await child(h, root), await child(h, root)
        below = await child(h, top)
        for run in (root, top, beside, below):
            assert (await h.settle(run)).state == "parked"
        pending = (await h.settle(below)).pending
        sent = len(h.bus.events)
        assert await h.platform.runs.cancel(h.organization_id, top, user_id=h.user_id, reason="  the order is gone ")
        assert {event.run_id for event in h.bus.events[sent:]} == {top, below}
        assert not await h.platform.runs.cancel(h.organization_id, top)
        assert [(await h.settle(run)).state for run in (top, below)] == ["cancelled", "cancelled"]
        assert [(await row(h, run))["cancel_reason"] for run in (top, below)] == ["the order is gone"] * 2
        with pytest.raises(Conflict, match="cancelled"):
            await h.platform.approvals.decide(
                h.organization_id, pending[0].id, user_id=h.user_id, verdict=Verdict.APPROVED
            )
        for run in (root, beside):
            await h.decide(run)
            assert (await h.settle(run)).state == "succeeded"
        assert world.of("mail.send") == ["hello", "hello"]


async def test_cancelling_a_run_that_is_over_stops_what_it_left_running(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        root = await h.start()
        below = await child(h, root)
        await h.settle(root)
        assert await h.platform.runs.cancel(h.organization_id, root)
        assert (await h.settle(below)).state == "cancelled"
        assert (await row(h, root))["state"] == "succeeded"


@pytest.mark.guarantee("W1")
async def test_no_child_that_starts_beside_a_cancel_is_left_running(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        for _ in range(5):
            root = await h.start()
            middle = await child(h, root)
            barrier = asyncio.Barrier(6)

            async def start(parent: UUID, barrier: asyncio.Barrier = barrier) -> UUID | None:
                await barrier.wait()
                try:
                    return await child(h, parent)
                except ParentRefuses:
                    return None

            async def stop(root: UUID = root, barrier: asyncio.Barrier = barrier) -> None:
                await barrier.wait()
                await h.platform.runs.cancel(h.organization_id, root)

            await asyncio.gather(stop(), start(root), start(middle), start(middle), start(root), start(middle))
            left = await rows(
                h,
                "select id from agent.runs where root_run_id = %(root)s and cancel_requested_at is null",
                root=root,
            )
            assert left == []


@pytest.mark.guarantee("M2")
async def test_the_money_of_a_tree_is_its_roots_whatever_a_child_was_promised(database: str) -> None:
    bounded = RunCeilings(max_cost=Decimal(1))
    async with harness(tools=[], script=[Say("Hi.")], database_url=database, ceilings=bounded) as h:
        root = await h.start()
        rich = AgentDefinition(
            name="rich", instructions="x", model=h.agent.model, ceilings=RunCeilings(max_cost=Decimal(100))
        )
        below = await child(h, root, agent=rich)
        await execute(
            h,
            "insert into agent.ai_usage_log (id, organization_id, root_run_id, run_id, kind, provider, item, quantity, unit, cost, ok)"
            " select gen_random_uuid(), organization_id, id, id, 'model', 'x', 'x', 1, 'token', 1, true from agent.runs where id = %(id)s",
            id=root,
        )
        settled = await h.settle(below)
        assert settled.partial_reason == "budget_exhausted"
