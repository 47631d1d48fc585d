"""What money does to a run, on the real Postgres: ceilings of the tree and of the day, prices of model requests, stops of calls."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentic.contract.approvals import ApprovalRequest
from agentic.contract.clock import SystemClock
from agentic.contract.principal import RunCeilings
from agentic.contract.results import ErrorCode, ToolError, ToolResult, ToolResultMeta, ToolStop
from agentic.runtime.agent.advance import Advance
from agentic.runtime.agent.script import Usage
from agentic.services.tools.calls import ToolCall, ToolInvocation
from agentic.testing import Call, Calls, Fail, Harness, Say, harness
from agentic.testing.harness import SHORT
from core_world import World, execute, rows

LOOK = Calls([Call("crm.search", {"text": "per"})])
MAIL = Calls([Call("mail.send", {"text": "hello"})])
COSTLY = Usage(cost=Decimal("0.40"))
FREE = Usage(cost=Decimal(0))


def bounded(amount: str) -> RunCeilings:
    return RunCeilings(max_cost=Decimal(amount))


async def price(
    h: Harness, unit: str, amount: str, *, item: str = "scripted", everybody: bool = False, in_s: float = -1
) -> UUID:
    [row] = await rows(
        h,
        "insert into agent.prices (organization_id, provider, item, unit, unit_price, valid_from) values (%(organization)s, "
        "'Scripted', %(item)s, %(unit)s, %(amount)s, clock_timestamp() + make_interval(secs => %(in_s)s)) returning id",
        organization=None if everybody else h.organization_id,
        item=item,
        unit=unit,
        amount=Decimal(amount),
        in_s=in_s,
    )
    return UUID(str(row["id"]))


async def hold(h: Harness, run_id: UUID, amount: str) -> None:
    await execute(
        h,
        "insert into agent.usage_reservations (organization_id, root_run_id, run_id, owner, owner_ref, amount) "
        "select organization_id, root_run_id, id, 'claim', %(ref)s, %(amount)s from agent.runs where id = %(run)s",
        ref=str(uuid4()),
        amount=Decimal(amount),
        run=run_id,
    )


async def spend(h: Harness, organization: UUID, amount: str, *, at: str = "clock_timestamp()") -> None:
    await execute(
        h,
        "insert into agent.ai_usage_log (id, organization_id, root_run_id, run_id, kind, provider, item, quantity, unit, cost, at) "
        f"values (gen_random_uuid(), %(organization)s, %(run)s, %(run)s, 'tool', 'x', 'x', 1, 'x', %(amount)s, {at})",
        organization=organization,
        run=uuid4(),
        amount=Decimal(amount),
    )


async def lines(h: Harness, run_id: UUID) -> list[dict[str, Any]]:
    return await rows(h, "select * from agent.ai_usage_log where run_id = %(run)s order by at", run=run_id)


async def requests(h: Harness, run_id: UUID) -> int:
    tree = await h.tree(run_id)
    return sum(span["kind"] == "llm" for span in tree.spans)


async def said(h: Harness, run_id: UUID) -> str:
    tree = await h.tree(run_id)
    return str([span for span in tree.spans if span["kind"] == "segment"][-1]["attributes"].get("said"))


@pytest.mark.guarantee("M2", "W4")
async def test_a_run_at_its_ceiling_asks_the_model_no_more_and_what_it_did_stays_done(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.read()], script=[LOOK, Say("x")], usage=COSTLY, ceilings=bounded("0.40"), database_url=database
    ) as h:
        run_id = await h.start()
        ended = await h.settle(run_id)
        assert (ended.state, ended.partial_reason, ended.answer) == ("succeeded", "budget_exhausted", None)
        assert (world.of("crm.search"), await requests(h, run_id)) == (["per"], 1)
        assert (await h.tree(run_id)).run["model_requests"] == 1
        assert "spent 0.4 USD; the limit is 0.40 USD" in await said(h, run_id)


async def test_a_run_below_its_ceiling_goes_on_and_its_last_request_may_pass_it(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.read()], script=[LOOK, Say("x")], usage=COSTLY, ceilings=bounded("0.41"), database_url=database
    ) as h:
        ended = await h.settle(await h.start())
        assert (ended.state, ended.partial_reason, ended.answer) == ("succeeded", None, "x")


@pytest.mark.guarantee("M2", "W4")
async def test_a_segment_of_a_run_at_its_ceiling_makes_no_call_and_asks_no_model(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.send()], script=[MAIL, Say("x")], usage=COSTLY, ceilings=bounded("0.40"), database_url=database
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "parked"
        await h.decide(run_id)
        ended = await h.settle(run_id)
        assert (ended.state, ended.partial_reason) == ("succeeded", "budget_exhausted")
        assert (world.effects, await requests(h, run_id)) == ([], 1)


@pytest.mark.guarantee("M2")
async def test_what_the_tree_holds_counts_at_the_checkpoint(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.send()], script=[MAIL, Say("x")], usage=FREE, ceilings=bounded("1"), database_url=database
    ) as h:
        run_id = await h.start()
        await h.settle(run_id)
        await h.decide(run_id)
        await hold(h, run_id, "1")
        ended = await h.settle(run_id)
        assert (ended.state, ended.partial_reason) == ("succeeded", "budget_exhausted")
        assert world.of("mail.send") == ["hello"], "what the run itself holds is settled by its segment, so it is led"
        assert await requests(h, run_id) == 1
        assert "hold 1 " in await said(h, run_id)


@pytest.mark.guarantee("M2")
async def test_a_child_is_bound_by_the_ceiling_of_its_root_and_by_what_the_whole_tree_spent_and_holds(
    database: str,
) -> None:
    world = World()
    async with harness(
        tools=[world.read()], script=[Say("x")], usage=COSTLY, ceilings=bounded("0.40"), database_url=database
    ) as h:
        root = await h.start()
        generous = h.agent.model_copy(update={"ceilings": bounded("100")})
        children = [await h.start(agent=generous) for _ in range(2)]
        for child in children:
            await execute(
                h,
                "update agent.runs set root_run_id = %(root)s, parent_run_id = %(root)s, depth = 1 where id = %(child)s",
                root=root,
                child=child,
            )
        await hold(h, children[1], "0.40")
        held = await h.settle(children[0])
        assert (held.partial_reason, await requests(h, children[0])) == ("budget_exhausted", 0)
        assert (await h.settle(root)).partial_reason == "budget_exhausted"
        await execute(h, "update agent.usage_reservations set state = 'released', ended_at = clock_timestamp()")
        await spend(h, h.organization_id, "5")
        assert (await h.settle(children[1])).answer == "x", "what others of the organization spend is not the tree's"


@pytest.mark.guarantee("M2", "W4")
async def test_an_organization_at_its_limit_of_the_day_begins_no_segment_and_the_run_says_which_limit(
    database: str,
) -> None:
    async with harness(tools=[], script=[Say("x")], usage=FREE, database_url=database) as h:
        await execute(
            h,
            "insert into agent.spending_limits (organization_id, per_day) values (%(o)s, 1)",
            o=h.organization_id,
        )
        await spend(h, h.organization_id, "7", at="date_trunc('day', clock_timestamp(), 'UTC') - interval '1 second'")
        await spend(h, uuid4(), "7")
        await spend(h, h.organization_id, "0.6")
        assert (await h.settle(await h.start())).answer == "x", "yesterday and other organizations do not count"
        holder = await h.start()
        await hold(h, holder, "0.4")
        stopped = await h.start()
        ended = await h.settle(stopped)
        assert (ended.state, ended.partial_reason) == ("succeeded", "budget_exhausted_day")
        assert await requests(h, stopped) == 0
        assert "today (UTC) spent 0.6 USD and hold 0.4" in await said(h, stopped)


@pytest.mark.guarantee("M3")
async def test_a_request_is_priced_from_the_table_to_the_last_digit_and_names_its_rows(database: str) -> None:
    usage = Usage(input_tokens=100, cached_tokens=40, output_tokens=20)
    async with harness(tools=[], script=[Say("x")], usage=usage, ceilings=bounded("1"), database_url=database) as h:
        await price(h, "input_token", "0.5", everybody=True)
        await price(h, "input_token", "0.3", item="*")
        await price(h, "input_token", "0.2", in_s=-60)
        paid = [
            await price(h, "input_token", "0.00000000000000000000000000123"),
            await price(h, "cached_token", "0.0001", item="*"),
            await price(h, "output_token", "0.01", everybody=True),
        ]
        await price(h, "input_token", "9", in_s=3600)
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "x"
        [line] = await lines(h, run_id)
        assert line["cost"] == 60 * Decimal("0.00000000000000000000000000123") + Decimal("0.004") + Decimal("0.2")
        assert set(line["price_row"].split(",")) == {str(row) for row in paid}
        [request] = [span for span in (await h.tree(run_id)).spans if span["kind"] == "llm"]
        assert (request["cost"], request["unpriced"]) == (line["cost"], 0), "the tree says what it cost"


@pytest.mark.guarantee("M3")
@pytest.mark.parametrize(
    ("usage", "prices", "cost"),
    [
        (Usage(input_tokens=100, cached_tokens=40, output_tokens=20), ("0.01", "0.1"), "3.00"),
        (Usage(input_tokens=10, cached_tokens=40, output_tokens=0), ("0.01", "0.1"), "0.10"),
        (Usage(input_tokens=0, output_tokens=0), ("0", "0"), "0"),
        (Usage(input_tokens=0, output_tokens=0), ("0.01", "0.1"), None),
        (Usage(input_tokens=9, output_tokens=0), ("0.01", None), None),
        (Usage(input_tokens=9, output_tokens=9, cost=Decimal("0.7")), ("0.01", "0.1"), "0.7"),
    ],
    ids=["cached-at-input", "more-cached-than-input", "free", "reported-nothing", "half-a-price", "provider-said"],
)
async def test_a_request_costs_what_its_provider_said_else_what_prices_make_of_it_else_nobody_knows(
    database: str, usage: Usage, prices: tuple[str, str | None], cost: str | None
) -> None:
    async with harness(tools=[], script=[Say("x")], usage=usage, database_url=database) as h:
        for unit, amount in zip(("input_token", "output_token"), prices, strict=True):
            if amount is not None:
                await price(h, unit, amount)
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "x"
        [line] = await lines(h, run_id)
        assert line["cost"] == (None if cost is None else Decimal(cost))
        assert (line["price_row"] is not None) == (cost is not None and usage.cost is None)


@pytest.mark.guarantee("D4", "W4")
async def test_a_bounded_run_whose_model_has_no_price_fails_and_says_what_to_do(database: str) -> None:
    async with harness(tools=[], script=[Say("x")], ceilings=bounded("1"), database_url=database) as h:
        run_id = await h.start()
        ended = await h.settle(run_id)
        assert (ended.state, ended.error_code, ended.answer) == ("failed", "model_unpriced", None)
        assert "'agentic prices set Scripted scripted input_token AMOUNT'" in await said(h, run_id)
        [line] = await lines(h, run_id)
        assert (line["cost"], line["input_tokens"]) == (None, 100)


@pytest.mark.guarantee("D4")
async def test_a_bounded_run_whose_model_has_no_price_asks_it_once(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.read()], script=[LOOK, LOOK, Say("x")], ceilings=bounded("1"), database_url=database
    ) as h:
        run_id = await h.start()
        ended = await h.settle(run_id)
        assert (ended.state, ended.error_code, await requests(h, run_id)) == ("failed", "model_unpriced", 1)


@pytest.mark.guarantee("D4")
async def test_a_bounded_run_whose_worker_died_before_it_could_say_so_is_ended_by_the_next_one(database: str) -> None:
    world = World()
    async with harness(
        tools=[world.send()], script=[MAIL, Say("x")], ceilings=bounded("1"), database_url=database
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).state == "parked", "the line is written with the pause"
        await h.decide(run_id)
        ended = await h.settle(run_id)
        assert (ended.state, ended.error_code, world.effects) == ("failed", "model_unpriced", [])


async def test_a_run_without_a_ceiling_succeeds_with_a_line_that_nobody_can_count(database: str) -> None:
    async with harness(tools=[], script=[Say("x")], database_url=database) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "x"
        assert [line["cost"] for line in await lines(h, run_id)] == [None]


async def test_a_request_that_the_provider_refused_costs_nothing_and_hinders_no_bounded_run(database: str) -> None:
    async with harness(
        tools=[], script=[Say("x")], usage=FREE, failures={0: Fail(503)}, ceilings=bounded("1"), database_url=database
    ) as h:
        run_id = await h.start()
        assert (await h.settle(run_id)).answer == "x"
        assert [(line["ok"], line["cost"]) for line in await lines(h, run_id)] == [(False, 0), (True, 0)]


class Answers:
    """An invoker that gives every call one answer, and counts them."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.calls: list[str] = []

    async def invoke(self, call: ToolCall, inv: ToolInvocation) -> ToolResult:
        self.calls.append(call.tool)
        return self.result

    async def must_ask(self, call: ToolCall, inv: ToolInvocation) -> ApprovalRequest | None:
        return None


async def led_by(h: Harness, invoker: Answers, run_id: UUID) -> dict[str, Any]:
    leader = Advance(
        store=h.platform.run_store,
        invoker=invoker,
        loop=h.platform.loop,
        clock=SystemClock(),
        flush=h.platform.outbox.flush,
        timings=SHORT,
    )
    await leader.advance(h.organization_id, run_id)
    [row] = await rows(h, "select * from agent.runs where id = %(run)s", run=run_id)
    return row


def refused(code: ErrorCode, stop: ToolStop | None) -> ToolResult:
    return ToolResult(ok=False, error=ToolError(code=code, message="No."), stop=stop)


@pytest.mark.guarantee("M2", "D4", "W4")
@pytest.mark.parametrize("tool", ["crm.search", "notes.save"], ids=["in-the-loop", "in-the-drain"])
@pytest.mark.parametrize(
    ("result", "end"),
    [
        (refused(ErrorCode.BUDGET_EXHAUSTED, "budget_exhausted"), ("succeeded", "budget_exhausted", None)),
        (refused(ErrorCode.INTERNAL_ERROR, "fault"), ("failed", None, "internal_error")),
        (refused(ErrorCode.UNAVAILABLE, "fault"), ("failed", None, "unavailable")),
        (
            ToolResult(ok=True, meta=ToolResultMeta(unreadable=True), stop="fault"),
            ("failed", None, "internal_error"),
        ),
    ],
    ids=["exhausted", "fault", "fault-under-its-own-code", "fault-after-the-effect"],
)
async def test_one_stop_ends_a_run_one_way_wherever_its_call_was_made(
    database: str, tool: str, result: ToolResult, end: Sequence[str | None]
) -> None:
    world = World()
    # a read runs in the loop beside its siblings, so it is alone; of two writes the second is never decided
    calls = [Call(tool, {"text": "1"})] if tool == "crm.search" else [Call(tool, {"text": n}) for n in ("1", "2")]
    async with harness(
        tools=[world.read(), world.write()], script=[Calls(calls), Say("x")], database_url=database
    ) as h:
        run_id = await h.start()
        invoker = Answers(result)
        row = await led_by(h, invoker, run_id)
        assert (row["state"], row["partial_reason"], row["error_code"]) == tuple(end)
        assert invoker.calls == [tool]
        assert await requests(h, run_id) == 1
        assert (await said(h, run_id)).startswith(f"{tool}: ")


async def test_the_code_alone_stops_nothing_a_remote_tool_may_have_a_budget_of_its_own(database: str) -> None:
    world = World()
    async with harness(tools=[world.read()], script=[LOOK, Say("x")], database_url=database) as h:
        run_id = await h.start()
        row = await led_by(h, Answers(refused(ErrorCode.BUDGET_EXHAUSTED, None)), run_id)
        assert (row["state"], row["partial_reason"], row["answer"]) == ("succeeded", None, "x")
