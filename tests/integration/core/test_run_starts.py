"""What a start may ask for: an agent by name, a lane, lower bounds, a deadline; and how runs are found again."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.bootstrap import App, open_platform
from agentic.contract.errors import Conflict, NotFound, ProgramFault
from agentic.contract.principal import Principal, RunCeilings
from agentic.runtime.agent.definition import AgentDefinition
from agentic.services.runs.models import RunQuery
from agentic.testing import Harness, Say, harness
from agentic.testing.harness import RecordingBus
from core_world import execute, rows


async def start(h: Harness, text: str = "Go.", *, key: str = "", **given: Any) -> UUID:
    principal = Principal(organization_id=h.organization_id, user_id=h.user_id)
    started = await h.platform.runs.start(
        given.pop("agent", h.agent), text, principal=principal, request_key=key or str(uuid4()), **given
    )
    return started.run_id


async def row(h: Harness, run_id: UUID) -> dict[str, Any]:
    [found] = await rows(
        h,
        "select *, extract(epoch from deadline_at - created_at)::float as lasts_s from agent.runs where id = %(id)s",
        id=run_id,
    )
    return found


async def test_an_agent_is_started_by_the_name_its_app_declares(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        app = App(agents=[AgentDefinition(name="scribe", instructions="Write.", model="m")], models={"m": object})
        principal = Principal(organization_id=h.organization_id)
        async with open_platform(app, database, bus=RecordingBus()) as platform:
            started = await platform.runs.start("scribe", "Go.", principal=principal, request_key="k")
            with pytest.raises(ProgramFault, match="no agent 'nobody'"):
                await platform.runs.start("nobody", "Go.", principal=principal, request_key="l")
        assert (await row(h, started.run_id))["definition"]["instructions"] == "Write."


async def test_a_lane_is_one_of_two_and_goes_with_every_nudge(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        with pytest.raises(ProgramFault, match="interactive, batch"):
            await start(h, lane="fast")
        run_id = await start(h, lane="batch")
        assert h.bus.events[-1].data()["lane"] == "batch"
        await h.platform.runs.cancel(h.organization_id, run_id)
        assert h.bus.events[-1].data()["lane"] == "batch"


async def test_bounds_are_lowered_by_what_a_start_names_and_never_raised(database: str) -> None:
    own = RunCeilings(max_model_requests=50, max_tool_calls=None, max_cost=Decimal("2.50"))
    async with harness(tools=[], script=[Say("Hi.")], database_url=database, ceilings=own) as h:

        async def bounds(asked: RunCeilings | None) -> Mapping[str, Any]:
            found: Mapping[str, Any] = (await row(h, await start(h, ceilings=asked)))["ceilings"]
            return found

        whole = {"max_model_requests": 50, "max_tool_calls": None, "max_run_duration_s": 3600, "max_cost": "2.50"}
        assert await bounds(None) == whole
        assert await bounds(RunCeilings(max_cost=Decimal("0.10"))) == {**whole, "max_cost": "0.10"}
        higher = RunCeilings(max_model_requests=99, max_tool_calls=7, max_run_duration_s=None, max_cost=Decimal(9))
        assert await bounds(higher) == {**whole, "max_tool_calls": 7}


async def test_a_deadline_is_the_starts_own_or_the_deployments(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        assert (await row(h, await start(h)))["lasts_s"] == pytest.approx(30 * 24 * 3600, abs=5)
        assert (await row(h, await start(h, deadline_s=90)))["lasts_s"] == pytest.approx(90, abs=5)
        for wrong in (0, -1, 366 * 24 * 3600, float("nan")):
            with pytest.raises(ProgramFault, match="deadline_s"):
                await start(h, deadline_s=wrong)


@pytest.mark.parametrize(
    "other", [{"lane": "batch"}, {"deadline_s": 60}, {"ceilings": RunCeilings(max_tool_calls=1)}, {"session": "s"}]
)
async def test_the_same_key_under_other_bounds_is_a_conflict(database: str, other: dict[str, Any]) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        plain, chosen = await start(h, key="a"), await start(h, key="b", **other)
        assert await start(h, key="a") == plain
        assert await start(h, key="b", **other) == chosen
        with pytest.raises(Conflict, match="another input"):
            await start(h, key="a", **other)
        with pytest.raises(Conflict, match="another input"):
            await start(h, key="b")


async def test_a_listing_shows_what_is_looked_for_page_by_page(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        made = [await start(h, session="s" if number % 2 else None) for number in range(7)]
        batch = await start(h, lane="batch", agent=h.agent.model_copy(update={"name": "other"}))
        below = await start(h, parent=made[0])
        await h.settle(made[1])
        await execute(
            h, "update agent.runs set created_at = date_trunc('day', created_at)"
        )  # one moment for all of them

        async def found(**query: Any) -> set[UUID]:
            page = await h.platform.runs.page(h.organization_id, RunQuery(**query))
            assert page.behind is None
            return {each["id"] for each in page.rows}

        assert await found(states=["succeeded"]) == {made[1]}
        assert await found(states=["succeeded", "queued"], session_id="s") == {made[1], made[3], made[5]}
        assert await found(lane="batch") == await found(agent="other") == {batch}
        assert await found(root_run_id=made[0]) == {made[0], below}
        midnight = (await row(h, batch))["created_at"]
        assert await found(created_before=midnight) == set()
        assert await found(created_after=midnight) == {*made, batch, below}
        seen: list[UUID] = []
        behind = None
        for size in (4, 4, 1):
            page = await h.platform.runs.page(h.organization_id, limit=4, behind=behind)
            assert len(page.rows) == size
            seen += [each["id"] for each in page.rows]
            behind = page.behind
        assert behind is None
        assert sorted(seen) == sorted({*made, batch, below})


@pytest.mark.guarantee("T1")
async def test_a_run_elsewhere_is_in_no_listing_and_looks_like_a_missing_one(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await start(h, session="s")
        assert (await h.platform.runs.get(h.organization_id, run_id))["session_id"] == "s"
        elsewhere = uuid4()
        assert (await h.platform.runs.page(elsewhere, RunQuery(root_run_id=run_id))).rows == []
        with pytest.raises(NotFound, match=str(run_id)):
            await h.platform.runs.get(elsewhere, run_id)


async def test_a_reason_of_a_cancellation_is_kept_and_bounded(database: str) -> None:
    async with harness(tools=[], script=[Say("Hi.")], database_url=database) as h:
        run_id = await start(h)
        with pytest.raises(Conflict, match=r"1000|1,000"):
            await h.platform.runs.cancel(h.organization_id, run_id, reason="x" * 1001)
        assert await h.platform.runs.cancel(h.organization_id, run_id, user_id=h.user_id, reason="wrong \x00 order")
        kept = await h.platform.runs.get(h.organization_id, run_id)
        assert (kept["cancel_reason"], kept["cancel_requested_by"]) == ("wrong ␀ order", h.user_id)
