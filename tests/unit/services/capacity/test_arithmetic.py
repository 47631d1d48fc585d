"""The sum over a vendor account: lanes add up, parallels add up, sequences and branches take their widest."""

from typing import Literal

import pytest

from agentic.contract.lanes import Lane
from agentic.services.capacity.arithmetic import account_loads, agent_width, unknown_tools, width
from agentic.services.capacity.declared import (
    Branch,
    Capacity,
    Node,
    Parallel,
    Sequence,
    Shape,
    VendorAccount,
    WorkflowWidth,
)
from agentic.services.tools.models import HandlerBinding, IdempotencyClass, Risk, SideEffects, ToolSpec

SEARCH, FIND, SEND = "research.search_web", "research.find_contact", "email.send"


def tool(name: str, effect: Literal["read", "send"] = "read", **fields: object) -> ToolSpec:
    return ToolSpec.model_validate(
        {
            "name": name,
            "description": "A tool.",
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
            "binding": HandlerBinding(handler_key=name),
            "side_effects": SideEffects(effect),
            "idempotency": IdempotencyClass.READ_ONLY if effect == "read" else IdempotencyClass.NON_IDEMPOTENT,
            "risk": Risk.LOW,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("shape", "calls"),
    [
        (Node(tool=SEARCH, fanout=6), 6),
        (Node(tool=FIND, fanout=6), 0),
        (Sequence(steps=(Node(tool=SEARCH, fanout=2), Node(tool=SEARCH, fanout=5))), 5),
        (Branch(ways=(Node(tool=SEARCH, fanout=3), Node(tool=FIND, fanout=9))), 3),
        (Parallel(ways=(Node(tool=SEARCH, fanout=4), Node(tool=SEARCH, fanout=4))), 8),
        (
            Parallel(ways=(Sequence(steps=(Node(tool=SEARCH, fanout=4), Node(tool=SEARCH))), Node(tool=SEARCH))),
            5,
        ),
        (Sequence(steps=()), 0),
    ],
)
def test_the_width_of_a_workflow_is_that_of_its_widest_moment(shape: Shape, calls: int) -> None:
    assert width(shape, {SEARCH}) == calls


def test_vendor_arithmetic_adds_two_wide_nodes_that_can_run_in_parallel_against_one_account() -> None:
    account = VendorAccount(provider="exa", tools=(SEARCH,), limit=100)
    wide = Node(tool=SEARCH, fanout=10)
    capacity = Capacity(
        runs_at_once=5,
        accounts=(account,),
        agents_in=(),
        workflows=(
            WorkflowWidth(name="apart", lane=Lane.BATCH, shape=Sequence(steps=(wide, wide))),
            WorkflowWidth(name="beside", lane=Lane.BATCH, shape=Parallel(ways=(wide, wide))),
        ),
    )
    [load] = account_loads(capacity, {})
    assert [(lane.lane, lane.product, lane.widest) for lane in load.lanes] == [
        (Lane.INTERACTIVE, 0, None),
        (Lane.BATCH, 100, "beside"),
    ]
    assert load.fits
    [tight] = account_loads(capacity.model_copy(update={"organizations": 2}), {})
    assert tight.calls == 200
    assert not tight.fits


def test_an_agent_reads_side_by_side_and_does_everything_else_one_by_one() -> None:
    assert agent_width([tool(SEARCH), tool(SEND, "send")], {SEARCH, SEND}) == 8
    assert agent_width([tool(SEARCH), tool(SEND, "send")], {SEND}) == 1
    assert agent_width([tool(SEARCH, parallel_safe=False)], {SEARCH}) == 1
    assert agent_width([tool(SEND, "send")], {SEARCH}) == 0


def test_lanes_add_up_and_an_agent_counts_in_the_lanes_it_is_started_in() -> None:
    account = VendorAccount(provider="exa", tools=(SEARCH,), limit=320)
    capacity = Capacity(runs_at_once=20, accounts=(account,))
    [load] = account_loads(capacity, {"researcher": [tool(SEARCH)]})
    assert load.calls == 20 * 8 + 20 * 8
    assert load.fits
    [only_batch] = account_loads(
        capacity.model_copy(update={"agents_in": (Lane.BATCH,)}), {"researcher": [tool(SEARCH)]}
    )
    assert only_batch.calls == 160


def test_a_tool_that_nobody_declares_is_named_wherever_the_capacity_names_it() -> None:
    shape = Branch(
        ways=(Sequence(steps=(Node(tool=SEARCH), Node(tool="research.serach"))), Parallel(ways=(Node(tool=SEND),)))
    )
    capacity = Capacity(
        accounts=(VendorAccount(provider="mail", tools=(SEND, "email.snd"), limit=1),),
        workflows=(WorkflowWidth(name="leads", lane=Lane.BATCH, shape=shape),),
    )
    assert unknown_tools(capacity, {SEARCH, FIND, SEND}) == ["email.snd", "research.serach"]
    assert unknown_tools(capacity, {SEARCH, SEND, "email.snd", "research.serach"}) == []
