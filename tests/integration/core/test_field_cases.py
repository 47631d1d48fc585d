"""Cases from the field of the areas database, approval and durable functions, where no test of the part itself tells them whole."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.principal import Principal
from agentic.contract.results import ErrorCode
from agentic.runtime.agent.script import SeenMessage, Turn
from agentic.services.approvals.models import Approval, Verdict
from agentic.services.tools.context import CallContext
from agentic.testing import Call, Calls, Harness, Say, harness
from core_world import Done, World, execute, rows

MAIL = Calls([Call("mail.send", {"text": "hello"})])


@pytest.mark.guarantee("A3", "J1")
async def test_case_4_deciding_and_leading_twice_over_in_two_deployments_is_one_decision_and_one_effect(
    database: str,
) -> None:
    world = World()
    script: list[Turn] = [MAIL, Say("Done.")]
    async with (
        harness(tools=[world.send()], script=script, database_url=database) as one,
        harness(tools=[world.send()], script=script, database_url=database) as two,
    ):
        two.organization_id, two.user_id = one.organization_id, one.user_id
        run_id = await one.start()
        [approval] = (await one.settle(run_id)).pending
        barrier = asyncio.Barrier(20)

        async def approves(h: Harness) -> Approval:
            await barrier.wait()
            return await h.platform.approvals.decide(
                h.organization_id, approval.id, user_id=h.user_id, verdict=Verdict.APPROVED
            )

        answers = await asyncio.gather(*(approves(h) for h in [one, two] * 10))
        assert len({(each.decided_by, each.decided_at, each.status) for each in answers}) == 1
        await asyncio.gather(*(h.settle(run_id) for h in (one, two)))
        assert (await one.settle(run_id)).state == "succeeded"
        assert [await h.advance(run_id) for h in (one, two)] == ["idle", "idle"]
        assert (await approves_again(one, approval.id)).status == "approved"
        assert world.effects == [("mail.send", "hello")]
        [decided] = await rows(one, "select count(*) as n from agent.approvals where status = 'approved'")
        assert decided["n"] == 1


async def approves_again(h: Harness, approval_id: UUID) -> Approval:
    return await h.platform.approvals.decide(
        h.organization_id, approval_id, user_id=h.user_id, verdict=Verdict.APPROVED
    )


@pytest.mark.guarantee("A2")
async def test_case_8_a_rejected_call_is_asked_about_again_only_once_the_person_says_something_new(
    database: str,
) -> None:
    world = World()

    def turn(history: Sequence[SeenMessage]) -> Say | Calls:
        since = len(history) - 1 - [message.role for message in reversed(history)].index("user")
        refused = sum(message.role == "tool" for message in history[since:])
        return MAIL if refused < 2 else Say("They said no.")

    async with harness(tools=[world.send()], script=[turn] * 40, database_url=database) as h:

        async def says(text: str) -> UUID:
            principal = Principal(organization_id=h.organization_id, user_id=h.user_id)
            started = await h.platform.runs.start(
                h.agent, text, principal=principal, request_key=str(uuid4()), session="s"
            )
            return started.run_id

        first = await says("Write to Per.")
        await h.settle(first)
        await h.decide(first, "rejected")
        assert (await h.settle(first)).state == "succeeded"
        assert len((await h.tree(first)).approvals) == 1  # the repeat was answered from the decision
        second = await says("Do it after all.")
        assert len((await h.settle(second)).pending) == 1
        await h.decide(second)
        assert (await h.settle(second)).state == "succeeded"
        assert world.effects == [("mail.send", "hello")]


@pytest.mark.guarantee("B1", "J4")
async def test_case_10_many_huge_answers_and_a_huge_error_cost_the_run_neither_its_context_nor_its_effect(
    database: str,
) -> None:
    world = World()

    class Refused(Exception):
        """A business refusal."""

    async def large(_ctx: CallContext, args: Any) -> Any:
        return Done(id=f"{args.text} " + "ø" * 350_000)

    async def refuses(_ctx: CallContext, _args: Any) -> Any:
        raise Refused("x" * 6_000_000)

    tools = [
        world.read(does=large),
        world.write(does=refuses, refusals={Refused: ErrorCode.NOT_FOUND}),
    ]
    looks = [Calls([Call("crm.search", {"text": f"{turn}-{n}"}) for n in range(8)]) for turn in range(3)]
    script: list[Turn] = [*looks, Calls([Call("notes.save", {"text": "milk"})]), Say("Done.")]
    async with harness(tools=tools, script=script, database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "succeeded"
        told = [text for role, text in await h.messages(run_id) if role == "tool"]
        assert len(told) == 25
        assert max(len(text.encode()) for text in told) <= 34 * 1024
        assert world.of("notes.save") == ["milk"]
        [largest] = await rows(h, "select max(octet_length(data::text)) as event from agent.outbox")
        assert largest["event"] < 1024
        [spans] = await rows(
            h,
            "select max(octet_length(coalesce(output, ''))) as output, max(octet_length(attributes::text)) as rest from agent.spans",
        )
        assert spans["output"] <= 64 * 1024
        assert spans["rest"] <= 16 * 1024


@pytest.mark.guarantee("W3")
async def test_case_15_no_connection_is_held_while_a_tool_runs(database: str) -> None:
    world = World()
    made: list[Harness] = []
    free: list[bool] = []

    async def looks_at_the_pool(_ctx: CallContext, _args: Any) -> Any:
        pool = made[0].platform.database.pool
        async with asyncio.timeout(20):
            while True:  # a renewal of the lease may hold one for a moment
                stats = pool.get_stats()
                if stats["pool_available"] == stats["pool_size"]:
                    break
                await asyncio.sleep(0.01)
        free.append(True)
        return Done(id="1")

    tools = [world.read(does=looks_at_the_pool), world.write(does=looks_at_the_pool)]
    script: list[Turn] = [
        Calls([Call("crm.search", {"text": "a"}), Call("crm.search", {"text": "b"})]),
        Calls([Call("notes.save", {"text": "milk"})]),
        Say("Done."),
    ]
    async with harness(tools=tools, script=script, database_url=database) as h:
        made.append(h)
        assert (await h.settle(await h.start())).state == "succeeded"
        assert free == [True, True, True]


@pytest.mark.guarantee("W1", "W2")
async def test_case_18_a_decision_before_the_wait_and_one_delivered_a_day_late_change_nothing_but_speed(
    database: str,
) -> None:
    world = World()
    async with harness(tools=[world.send()], script=[MAIL, Say("Done.")], database_url=database) as h:
        run_id = await h.start()
        await h.advance(run_id)  # the question is filed and the run parked in one commit; nobody waits yet
        await h.decide(run_id)
        assert await h.advance(run_id) == "succeeded"
        assert world.effects == [("mail.send", "hello")]
        sent = [event.model_dump(mode="json") for event in h.bus.events]
        assert all(set(event.data()) == {"organization_id", "run_id", "lane"} for event in h.bus.events)
        assert "hello" not in json.dumps(sent)  # a nudge says where to look, and nothing of what is there
        await execute(h, "update agent.runs set finished_at = finished_at - interval '25 hours'")
        for _ in range(2):
            assert await h.advance(run_id) == "idle"
        assert world.effects == [("mail.send", "hello")]


async def test_case_49_a_new_message_while_a_run_of_the_session_waits_is_a_run_of_its_own(database: str) -> None:
    world = World()

    def turn(history: Sequence[SeenMessage]) -> Say | Calls:
        last = history[-1]
        return MAIL if last.role == "user" and last.text == "Write to Per." else Say(f"Heard after {last.role}.")

    async with harness(tools=[world.send()], script=[turn] * 20, database_url=database) as h:

        async def says(text: str) -> UUID:
            principal = Principal(organization_id=h.organization_id, user_id=h.user_id)
            return (
                await h.platform.runs.start(h.agent, text, principal=principal, request_key=str(uuid4()), session="s")
            ).run_id

        waits = await says("Write to Per.")
        assert (await h.settle(waits)).state == "parked"
        beside = await says("What time is it?")
        assert (await h.settle(beside)).answer == "Heard after user."
        await h.decide(waits)
        assert (await h.settle(waits)).answer == "Heard after tool."
        assert [role for role, _ in await h.messages(waits)] == ["user", "assistant", "tool", "assistant"]
        after = await says("And now?")
        assert [text for _, text in await h.messages(after)] == [
            "Write to Per.",
            "Heard after tool.",
            "What time is it?",
            "Heard after user.",
            "And now?",
        ]
        assert world.effects == [("mail.send", "hello")]
