"""A node waits for a person: the row decides, and events change nothing but speed (W1, W2)."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import inngest
import pytest
from pydantic import JsonValue

from agentic.contract.events import EventName
from agentic.contract.principal import Role
from agentic.runtime.workflow import WorkflowContext, tool_step
from agentic.runtime.workflow.leading import NodeLeader
from agentic.services.approvals.models import Verdict
from core_world import World
from workflow_flows import flow_app
from workflow_stage import QUICK, Stage, stage


async def send_one(ctx: WorkflowContext) -> JsonValue:
    """One email, and what came of it."""
    result = await tool_step(ctx, "mail", "mail.send", {"text": "hello"}, continue_on_error=True)
    return "sent" if result.error is None else str(result.error.code)


async def decided(s: Stage, node: str, event_id: str = "") -> None:
    """Send the event of a decision, whether there was one or not."""
    (run,) = [run for run in await s.runs() if run["node"] == node]
    await s.client.send(
        inngest.Event(
            name=EventName.RUN_DECIDED,
            id=event_id,
            data={"organization_id": str(s.organization_id), "run_id": str(run["id"]), "lane": "batch"},
        )
    )


@pytest.mark.guarantee("W2")
async def test_a_decision_that_comes_before_the_function_looks_needs_no_wait_at_all(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    look = NodeLeader.look

    async with stage(database, flow_app(send_one, [world.send()])) as s:

        async def decide_first(self: NodeLeader, *args: Any) -> Any:
            await s.decide()
            await s.deliver()
            return await look(self, *args)

        monkeypatch.setattr(NodeLeader, "look", decide_first)
        await s.send("flow")
        (run,) = await s.ended()
        assert run.result == "sent"
        assert not any("wait" in step.name for step in run.steps)
        assert world.of("mail.send") == ["hello"]


@pytest.mark.guarantee("W2")
async def test_a_decision_whose_event_comes_before_the_wait_is_registered_costs_one_slice(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    look = NodeLeader.look

    async with stage(database, flow_app(send_one, [world.send()])) as s:

        async def decide_after(self: NodeLeader, *args: Any) -> Any:
            found = await look(self, *args)
            if await s.decide():
                await s.deliver()
            return found

        monkeypatch.setattr(NodeLeader, "look", decide_after)
        await s.send("flow")
        await s.waiting("mail/approval-0/wait-0")
        assert world.effects == []
        s.jump(61)
        (run,) = await s.ended()
        assert run.result == "sent"
        assert world.of("mail.send") == ["hello"]


@pytest.mark.guarantee("W2", "A3")
async def test_events_of_decisions_that_come_twice_or_without_a_decision_or_25_hours_late_change_nothing(
    database: str,
) -> None:
    world = World()
    async with stage(database, flow_app(send_one, [world.send()])) as s:
        await s.send("flow", event_id="lead-1")
        await s.send("flow", event_id="lead-1")
        await s.waiting("mail/approval-0/wait-0")
        await decided(s, "mail")
        await s.waiting("mail/approval-0/wait-1")  # the row says that nobody has decided
        await s.decide()
        committed = list(s.bus.events)
        await s.deliver()
        s.bus.events = committed
        await s.deliver(new_ids=True)
        (run,) = await s.ended()
        s.jump(25 * 3600)
        s.bus.events = committed
        await s.deliver(new_ids=True)
        await s.engine.idle(20)
        assert run.result == "sent"
        assert world.of("mail.send") == ["hello"]
        assert len(await s.engine.runs("product-flow")) == 1


@pytest.mark.guarantee("A4")
async def test_a_question_that_nobody_answers_expires_by_the_databases_clock_and_the_function_goes_on(
    database: str,
) -> None:
    world = World()
    timings = replace(QUICK, approval_expires_s=2)
    async with stage(database, flow_app(send_one, [world.send()]), timings=timings) as s:
        await s.send("flow")
        (run,) = await s.ended()
        assert run.result == "expired"
        assert world.effects == []


@pytest.mark.guarantee("W2")
async def test_a_question_may_wait_for_days_in_few_steps(database: str) -> None:
    world = World()
    async with stage(database, flow_app(send_one, [world.send()])) as s:
        await s.send("flow")
        for number, seconds in enumerate((60, 300, 1800, 6 * 3600, 6 * 3600)):
            await s.waiting(f"mail/approval-0/wait-{number}")
            s.jump(seconds + 1)
        await s.waiting("mail/approval-0/wait-5")
        await s.decide()
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == "sent"
        assert len(run.steps) < 20


@pytest.mark.guarantee("A2", "W2")
async def test_two_questions_side_by_side_are_decided_apart_and_each_runs_once(database: str) -> None:
    world = World()

    async def both(ctx: WorkflowContext) -> JsonValue:
        one, two = await ctx.side_by_side(
            lambda: tool_step(ctx, "one", "mail.send", {"text": "one"}, continue_on_error=True),
            lambda: tool_step(ctx, "two", "mail.send", {"text": "two"}, continue_on_error=True),
        )
        return [one.ok, two.ok]

    async with stage(database, flow_app(both, [world.send()])) as s:
        await s.send("flow")
        await s.waiting("one/approval-0/wait-0")
        await s.waiting("two/approval-0/wait-0")
        pending = await s.platform.approvals.find(s.organization_id, status="pending")
        (second,) = [approval for approval in pending if '"two"' in approval.arguments_text]
        await s.answer(second.id, "rejected")
        await s.deliver()
        await s.until(lambda: _is(s, "two", "failed"))
        assert world.effects == []
        await s.decide()
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == [True, False]
        assert world.of("mail.send") == ["one"]


async def _is(s: Stage, node: str, state: str) -> bool:
    return (await s.states()).get(node) == state


@pytest.mark.guarantee("A5", "A2")
async def test_an_approval_whose_decider_lost_the_role_is_asked_for_again_and_the_function_waits_again(
    database: str,
) -> None:
    world = World()
    async with stage(database, flow_app(send_one, [world.send()])) as s:
        leaver = uuid4()
        await s.platform.approval_store.put_member(s.organization_id, leaver, Role.APPROVER)
        await s.send("flow")
        await s.waiting("mail/approval-0/wait-0")
        (asked,) = await s.platform.approvals.find(s.organization_id, status="pending")
        await s.platform.approvals.decide(s.organization_id, asked.id, user_id=leaver, verdict=Verdict.APPROVED)
        await s.execute("delete from agent.members where user_id = %(leaver)s", leaver=leaver)
        await s.deliver()
        await s.waiting("mail/approval-1/wait-0")
        assert world.effects == []
        await s.decide()
        await s.deliver()
        (run,) = await s.ended()
        assert run.result == "sent"
        assert world.of("mail.send") == ["hello"]


async def test_another_organizations_events_end_no_wait(database: str) -> None:
    world = World()
    async with stage(database, flow_app(send_one, [world.send()])) as s:
        await s.send("flow")
        await s.waiting("mail/approval-0/wait-0")
        await s.client.send(inngest.Event(name=EventName.RUN_DECIDED, data={"run_id": str(uuid4())}))
        await s.engine.idle(20)
        await s.waiting("mail/approval-0/wait-0")
        assert world.effects == []
